// Server: the composition: listeners, clients, the queue, the clock and the signals.
//
// A turn: the first event reads the clock and does what is due; events change the queue; when the
// turn ends each client that was touched or answered gets its replies in one write. It holds no
// queue rule.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "commands/service.h"
#include "config/settings.h"
#include "loop/listener.h"
#include "loop/loop.h"
#include "loop/signal.h"
#include "loop/tick.h"
#include "os/log.h"
#include "os/service_manager.h"
#include "server/client.h"
#include "server/client_queue.h"
#include "server/deadlines.h"
#include "server/endpoint.h"
#include "server/journal_owner.h"
#include "server/listeners.h"
#include "server/patience.h"
#include "server/supervision.h"

namespace tubed::server {

class Server final : public ClientHost, public loop::ListenerOwner, public EndpointHost {
 public:
  // Reads the settings again, for SIGHUP.
  using Reload = std::function<Result<Settings>()>;

  // `loop` and `log` outlive the server.
  Server(loop::Loop& loop, os::Log& log, const Settings& settings, Reload reload);
  ~Server();

  // Takes the sockets that it was started with, in place of the settings' listeners of their kind,
  // and opens the others, or says which one cannot be opened.
  Result<void> listen(std::vector<os::InheritedSocket> inherited);
  // With a journal: takes its directory and gets the jobs back. It blocks; connections wait
  // meanwhile.
  Result<void> recover();
  // Serves until SIGTERM or SIGINT, and until then what was read is answered. False: the journal
  // has failed, and the process is to end without touching it.
  bool run();

 private:
  static constexpr std::size_t kReadBufferBytes = 256 * 1024;

  // Each follows the one before it.
  enum class Phase : std::uint8_t {
    serving,
    stopping,  // no new connection; each client is closed when its input is answered
    closing,   // every client is closed, and no fact may follow; the log is being closed
    closed,    // the log is closed, and the loop ends
  };
  bool stopping() const { return phase_ >= Phase::stopping; }
  bool queue_closed() const { return phase_ >= Phase::closing; }

  void begin_tick() override;
  void look_after(Client& client) override;
  std::span<char> read_buffer() override { return {read_buffer_.get(), kReadBufferBytes}; }
  bool takes_input() const override { return !input_held_ && !input_must_wait(); }
  void defer(Client& client) override;
  std::string_view unready() const override;
  void on_connection(os::Socket socket) override;
  void on_accept_trouble(const std::string& reason, std::uint64_t refused) override;

  void end_tick();
  void journal_moved();
  void journal_failed();
  Time journal_time();
  std::string status() const;
  std::string_view doing() const;
  bool journal_is_full() const;
  void attend(Client& client);
  void let_gated_through();
  bool input_must_wait() const;
  void resume_congested();
  void hold_input(bool hold);
  void count_output(Client& client, std::size_t bytes);
  bool shed_output();
  void charge_tick(Client& client);
  // Replies and lists that clients have not taken. A body or a part of a list that several replies
  // refer to counts in each of them.
  std::uint64_t buffered_output() const {
    return output_bytes_ + service_.tube_list().pinned_bytes();
  }
  void serve_deferred();
  bool serve_next(ClientQueue& queue);
  bool has_deferred() const { return !deferred_.empty() || !deferred_light_.empty(); }
  void close_impatient();
  void arm_timers();
  void close(Client& client, std::string_view reason);
  Client* client_of(SessionId session) {
    return session < clients_.size() ? clients_[session].get() : nullptr;
  }
  // For the queues of clients.
  struct FindClient {
    Server& server;
    Client* operator()(SessionId session) const { return server.client_of(session); }
  };

  void apply(const Settings& settings);
  void set_limits();
  void reload();
  void advise_restart(std::vector<std::string> settings);
  void drain(bool draining);
  void limit_drain();
  bool is_drained() const;
  void end_drained();
  void give_back_memory();
  void asked_to_stop();
  void stop();
  bool dismiss_waiting();
  bool may_finish(const Client& client) const;
  void finish_silent();
  void stop_now(std::string_view reason);
  void close_queue();

  loop::Loop& loop_;
  os::Log& log_;
  Settings settings_;
  Reload reload_;
  commands::Service service_;
  std::unique_ptr<JournalOwner> journal_;  // null: jobs are in memory only
  std::vector<std::unique_ptr<loop::Listener>> listeners_;
  bool inherits_ = false;                         // clients' sockets were passed on
  std::unique_ptr<Endpoint> endpoint_;            // null: nothing listens for HTTP
  std::vector<std::unique_ptr<Client>> clients_;  // by session
  std::size_t client_count_ = 0;
  std::size_t waiting_count_ = 0;      // of clients that are closed last
  std::uint64_t output_bytes_ = 0;     // of replies that clients have not taken
  std::uint64_t most_job_memory_ = 0;  // since memory was last given back
  Patience patience_;
  // Not filled with zeros: what is never read into takes no memory.
  std::unique_ptr<char[]> read_buffer_ = std::make_unique_for_overwrite<char[]>(kReadBufferBytes);

  bool in_tick_ = false;
  bool asked_to_stop_ = false;
  bool drained_ = false;  // drain mode has ended it
  Phase phase_ = Phase::serving;
  bool journal_failed_ = false;
  bool journal_moved_ = false;
  bool input_held_ = false;
  FindClient find_client_{*this};
  std::vector<SessionId> woken_;
  ClientQueue dirty_{&Client::dirty};              // to be attended at the end of the tick
  ClientQueue gated_{&Client::gated};              // their replies wait for the log
  ClientQueue held_{&Client::held};                // they would be read from
  ClientQueue congested_{&Client::congested};      // they go on when the log is not congested
  ClientQueue deferred_{&Client::deferred};        // with work for later ticks, in turn
  ClientQueue deferred_light_{&Client::deferred};  // those that ask for little

  loop::Tick turn_;
  DeadlineTimer delay_timer_;
  DeadlineTimer ttr_timer_;
  DeadlineTimer pause_timer_;
  DeadlineTimer patience_timer_;
  DeadlineTimer journal_timer_;
  loop::Timer stop_timer_;
  loop::Timer grace_timer_;
  loop::Timer drain_timer_;
  Time draining_since_;
  Supervision supervision_;
  std::vector<std::unique_ptr<loop::Signal>> signals_;
};

}  // namespace tubed::server
