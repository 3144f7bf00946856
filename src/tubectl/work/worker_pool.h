// WorkerPool: all workers of a run, on one thread. It handles signals, and decides when to connect,
// to reserve and to end.
//
// Ownership: the pool owns the workers, the event loop and the connector; the workers own their
// connections and commands. `plan`, `limits` and `report` outlive the pool.
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

// When a run ends, and its number of workers. With Plan::wait_seconds it ends when every waiting
// worker has waited that long without a job.
struct RunLimits {
  std::size_t workers = 1;            // each runs a command, or several with batches
  std::optional<std::uint64_t> jobs;  // the number of commands to run
  bool wait_for_server = false;       // at the start; later the pool always waits
};

class WorkerPool {
 public:
  WorkerPool(const Plan& plan, const RunLimits& limits, const Report& report);

  // Runs until a signal stops it or no work is left. Returns the exit code. Precondition: `signals`
  // has SIGTERM and SIGINT.
  int run(client::SignalInput& signals);

 private:
  // The attempt to connect, for any worker that is away.
  struct Connecting {
    Connector connector;
    client::EventLoop::Watch watch{};
    bool done = false;
  };
  struct Outage {
    std::optional<TimePoint> since;  // since when no worker could connect
    TimePoint connect_at;            // time of the next attempt
    Clock::duration pause;           // after the next failed attempt
  };

  // Each uses what has become possible since the last tick.
  void connect();
  void reserve();
  void leave();
  // Returns the exit code once no work is left.
  std::optional<int> ended();
  // Waits for the next events and handles them.
  Result<void> tick();
  void serve_workers();
  void take_connection();
  // Returns the number of commands started, at most `most`.
  std::size_t serve(Worker& worker, std::size_t most);
  void take_stop_signal();
  void lost(const Error& error);

  // How many more jobs may be reserved: in all, by --count, and now.
  std::uint64_t jobs_left() const;
  std::uint64_t places_left() const;
  bool is_idle() const;
  bool wants_connection() const;
  std::optional<TimePoint> gives_up_at() const;
  std::optional<TimePoint> wait_until() const;

  const Plan& plan_;
  const RunLimits& limits_;
  const Report& report_;
  std::unique_ptr<client::EventLoop> loop_;
  client::EventLoop::Watch signals_watch_;
  std::deque<Worker> workers_;  // a deque, because workers must not move
  Connecting connecting_;
  std::size_t next_ = 0;  // the first worker that a tick serves
  TimePoint now_;
  int signals_taken_ = 0;
  bool stopping_ = false;  // no new jobs
  int exit_code_ = 0;
  bool was_greeted_ = false;  // a worker was greeted during this run
  Outage outage_;
};

}  // namespace tubed::tubectl::work
