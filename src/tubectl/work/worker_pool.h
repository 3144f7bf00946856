// WorkerPool: all workers of a run, on one thread; signals, and when to connect, to reserve and to
// end.
#pragma once

#include <csignal>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "client/event_loop.h"
#include "tubectl/work/connector.h"
#include "tubectl/work/report.h"
#include "tubectl/work/worker.h"

namespace tubed::tubectl::work {

// How long it goes on, and with how many workers. With Plan::wait_seconds it ends when all that
// wait have waited so long in vain.
struct RunLimits {
  std::size_t workers = 1;
  std::optional<std::uint64_t> jobs;  // so many commands, and no more
  bool wait_for_server = false;       // at the beginning; later it always does
};

class WorkerPool {
 public:
  WorkerPool(const Plan& plan, const RunLimits& limits, const Report& report);

  // Until it is told to end or has nothing more to do; returns the exit code. Precondition:
  // `signals` gives SIGTERM and SIGINT.
  int run(client::SignalInput& signals);

 private:
  // The attempt to connect for any worker that is away.
  struct Connecting {
    Connector connector;
    client::EventLoop::Watch watch{};
    bool done = false;
  };
  struct Outage {
    std::optional<TimePoint> since;  // no worker could connect since
    TimePoint connect_at;            // no attempt before
    Clock::duration pause;           // after the next failed attempt
  };

  // Each does what has become possible since the last turn.
  void connect();
  void reserve();
  void leave();
  // The exit code, once there is nothing more to do.
  std::optional<int> ended();
  // Waits for what comes next, and attends to it.
  Result<void> turn();
  void attend_workers();
  void take_connection();
  void attend(Worker& worker, bool may_read);
  void take_stop_signal();
  void lost(const Error& error);

  // How many more may be reserved.
  std::uint64_t jobs_left() const;
  bool is_idle() const;
  bool wants_connection() const;
  std::optional<TimePoint> gives_up_at() const;
  std::optional<TimePoint> wait_until() const;

  const Plan& plan_;
  const RunLimits& limits_;
  const Report& report_;
  std::unique_ptr<client::EventLoop> loop_;
  client::EventLoop::Watch signals_watch_;
  std::deque<Worker> workers_;  // they do not move
  Connecting connecting_;
  std::size_t next_ = 0;  // the worker that is attended to first
  TimePoint now_;
  int signals_taken_ = 0;
  bool stopping_ = false;  // no new jobs
  int exit_code_ = 0;
  bool was_greeted_ = false;  // by this server, ever
  Outage outage_;
};

}  // namespace tubed::tubectl::work
