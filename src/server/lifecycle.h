// Lifecycle: how a server drains and how it stops.
//
// A stop, after SIGTERM or SIGINT or at the end of a drain, goes through these steps:
//
//   0. A node that leads its cluster passes leadership on first, which closes its clients.
//   1. stop_clients(): no further connection is accepted. All waits in reserves end before the
//      first client is closed: the jobs that a closing client gives back must not go from one
//      waiting worker to the next.
//   2. A client from which something was received is closed when its input is answered and its
//      replies are sent. A client that was just accepted has its first command on the way, and a
//      close would reset the connection: it has kStopGrace.
//   3. Clients that waited in a reserve are closed last (Clients::finish_last()): they reconnect at
//      once, and until then other clients could still get an answer.
//   4. When no client is left, or shutdown_timeout has passed, or a second signal has arrived, all
//      clients and then the log are closed, which writes everything.
//   5. When the log is closed, what is kept besides the log is written (on_closed()).
//   6. The loop ends.
//
// In steps 4 and 5 a second signal, or shutdown_timeout once more, ends the process at once; the
// exit code says whether every acknowledged change is durable.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "loop/loop.h"
#include "loop/timer.h"
#include "os/log.h"
#include "server/listeners.h"
#include "server/service_notifier.h"
#include "serving/scheduler.h"

namespace tubed::server {

// In this order; some may be left out.
enum class Phase : std::uint8_t {
  serving,   // draining or not (Service::draining())
  stopping,  // steps 1 to 3
  closing,   // every client is closed and no fact follows; the log is being closed
  closed,    // the log is closed: steps 5 and 6
  failed,    // the log has failed: nothing may be acknowledged, and the loop ends
};

class Lifecycle {
 public:
  // Everything that is passed by reference outlives it. `settings` may change between two calls.
  Lifecycle(loop::Loop& loop, os::Log& log, commands::Service& service, const Settings& settings,
            serving::Clients& clients, serving::Scheduler& scheduler, Listeners& listeners,
            ServiceNotifier& notifier);

  Phase phase() const { return phase_; }
  bool stopping() const { return phase_ >= Phase::stopping; }
  // True if drain mode has stopped the server: the condition of drain.exit was met, or
  // drain.timeout has passed.
  bool drained() const { return drain_end_ == DrainEnd::reached; }
  bool drain_timed_out() const { return drain_end_ == DrainEnd::timed_out; }
  // The jobs that were reserved when drain.timeout was over.
  std::uint64_t interrupted() const { return interrupted_; }

  // Puts are refused, or accepted again: by a signal (SIGUSR1, SIGUSR2), or by a client's command.
  void drain(bool draining, std::optional<SessionId> client = {});
  // The settings of drain mode have changed.
  void drain_settings_changed();
  // `changed` is called when drain mode begins and when it is cancelled.
  void on_drain(std::function<void(bool draining)> changed) { drain_changed_ = std::move(changed); }
  // The first signal stops gracefully, the second immediately.
  void stop_requested();
  // The node was removed from its cluster: as the first signal, but the process ends with
  // os::kExitRemoved.
  void stop_removed();
  // Stops without waiting for the clients.
  void stop_at_once();
  // The log has failed, or the node of a cluster: the process ends with this exit code.
  void fail(int exit_code);
  // Of the process; 0 after a requested stop and after a drain.
  int exit_code() const { return exit_code_; }

  // In a cluster: a function that passes leadership on before step 1 and then calls `done`. It
  // returns false, and does not call `done`, if it cannot pass leadership on.
  using HandOver = std::function<bool(std::function<void()> done)>;
  void on_hand_over(HandOver hand_over) { hand_over_ = std::move(hand_over); }

  // A function for step 5, which calls `done` at its end.
  using Closed = std::function<void(std::function<void()> done)>;
  void on_closed(Closed closed) { closed_ = std::move(closed); }

  // Continues a drain or a stop after every client of this tick was served. True if clients are
  // dirty again.
  bool complete_tick();

 private:
  enum class DrainEnd : std::uint8_t { none, reached, timed_out };

  void stop();
  void stop_clients();
  bool is_drained() const;
  bool ends_by_drain() const;
  bool refuses_reserves() const;
  void end_drain(DrainEnd end);
  void time_out_drain();
  void finish_silent();
  void stop_now(std::string_view reason);
  void close_log();
  void end();
  void report_lost_jobs() const;

  loop::Loop& loop_;
  os::Log& log_;
  commands::Service& service_;
  const Settings& settings_;
  serving::Clients& clients_;
  serving::Scheduler& scheduler_;
  Listeners& listeners_;
  ServiceNotifier& notifier_;
  Phase phase_ = Phase::serving;
  HandOver hand_over_;
  Closed closed_;
  bool ended_ = false;  // step 6
  bool handing_over_ = false;
  int exit_code_ = 0;
  bool stop_requested_ = false;
  DrainEnd drain_end_ = DrainEnd::none;
  std::uint64_t interrupted_ = 0;
  std::function<void(bool)> drain_changed_;
  Time draining_since_;
  loop::Timer drain_timer_;
  loop::Timer grace_timer_;
  loop::Timer stop_timer_;
};

}  // namespace tubed::server
