// Crew: all slots of a run, on one thread; signals, and when to connect, to reserve and to end.
#pragma once

#include <csignal>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "client/event_loop.h"
#include "tubectl/work/connector.h"
#include "tubectl/work/report.h"
#include "tubectl/work/slot.h"

namespace tubed::tubectl::work {

// How long it goes on, and with how many slots. With Plan::wait_seconds it ends when all that wait
// have waited so long in vain.
struct Shift {
  std::size_t slots = 1;
  std::optional<std::uint64_t> jobs;  // so many commands, and no more
  bool wait_for_server = false;       // at the beginning; later it always does
};

class Crew {
 public:
  Crew(const Plan& plan, const Shift& shift, const Report& report);

  // Until it is told to end or has nothing more to do; returns the exit code. Precondition:
  // `signals` gives SIGTERM and SIGINT.
  int run(client::SignalInput& signals);

 private:
  // Each does what has become possible since the last turn.
  void connect();
  void reserve();
  void leave();
  // The exit code, once there is nothing more to do.
  std::optional<int> ended();
  // Waits for what comes next, and attends to it.
  Result<void> turn();
  void attend_slots();
  void take_connection();
  void attend(Slot& slot, bool may_read);
  void told_to_end();
  void lost(const Error& error);

  // How many more may be reserved.
  std::uint64_t jobs_left() const;
  bool is_idle() const;
  bool wants_connection() const;
  std::optional<Moment> gives_up_at() const;
  std::optional<Moment> wait_until() const;

  const Plan& plan_;
  const Shift& shift_;
  const Report& report_;
  std::unique_ptr<client::EventLoop> loop_;
  client::EventLoop::Watch signals_watch_;
  std::deque<Slot> slots_;  // they do not move
  Connector connector_;     // for any that is away
  client::EventLoop::Watch connector_watch_;
  bool connector_done_ = false;
  std::size_t next_ = 0;  // the slot that is attended to first
  Moment now_;
  int signals_taken_ = 0;
  bool stopping_ = false;  // no new jobs
  int exit_code_ = 0;
  bool was_greeted_ = false;            // by this server, ever
  std::optional<Moment> outage_since_;  // nobody could connect since
  Moment connect_at_;                   // not before
  Clock::duration pause_;
};

}  // namespace tubed::tubectl::work
