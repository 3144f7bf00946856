// Worker: one connection, the jobs that it has reserved, and a command for each job.
//
// It owns the connection, the jobs and the commands. The WorkerPool owns the worker and decides
// what concerns several workers: when to connect, when to reserve and how many jobs at most, and
// when to leave.
//
//   away ── greet ─▶ greeting ─▶ resting ── reserve ─▶ waiting ─▶ working
//                                   ▲─────────────────────┴───────────┘
//   each of its jobs:  looking ─▶ running ─▶ settling
//
// Invariants: the worker holds jobs exactly while working; a job has a command exactly while it is
// running. A worker that holds a job reserves no other: a connection that waits in a reserve cannot
// touch. When the connection is lost, the worker becomes away, except while a command runs: the
// command then continues without a connection, and the server gives the job to another worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "client/address.h"
#include "client/connection.h"
#include "client/event_loop.h"
#include "client/stats_block.h"
#include "facts/types.h"
#include "tubectl/work/command.h"
#include "tubectl/work/decision.h"
#include "tubectl/work/report.h"

namespace tubed::tubectl::work {

using client::Clock;
using client::TimePoint;

// The parameters that all workers of a run share.
struct Plan {
  client::Target server;
  std::vector<std::string> tubes;
  CommandLine command_line;
  Policy policy;
  std::optional<Clock::duration> longest_run;
  Clock::duration kill_after{};  // from SIGTERM to SIGKILL
  // How long a reserve waits at the server; no value: without limit.
  std::optional<std::uint32_t> wait_seconds;
  std::uint64_t batch = 1;  // the most jobs of a reserve, if the server has reserve-batch
};

class Worker {
 public:
  enum class State : std::uint8_t {
    away,      // no connection
    greeting,  // waits for the replies to watch and ignore
    resting,   // nothing to do
    waiting,   // in a reserve
    working,   // holds jobs
  };

  // `plan`, `report` and `loop` outlive the worker.
  Worker(const Plan& plan, const Report& report, client::EventLoop& loop)
      : plan_(plan), report_(report), loop_(loop) {}

  State state() const { return state_; }
  // True if a command runs or its result is being sent: ending now would leave work half done.
  bool is_at_work() const;
  // The last reserve timed out, and no job has arrived since.
  bool idle() const { return idle_; }
  // Number of jobs that it holds or that its reserve may bring.
  std::uint64_t jobs() const { return promised_ + tasks_.size(); }
  // The part of jobs() that is not counted in worked().
  std::uint64_t unworked() const;
  // Number of jobs whose command has ended.
  std::uint64_t worked() const { return worked_; }
  // Why no command can be started, or no job be reserved; the pool then stops the run.
  const std::optional<CannotRun>& cannot_run() const { return cannot_run_; }
  // Why the connection was lost. Returns each loss once.
  std::optional<Error> take_loss() { return std::exchange(loss_, std::nullopt); }

  // Takes this connection. Precondition: away.
  void greet(client::Connection connection);
  // Returns how many jobs the reserve may bring: at most `most`. Preconditions: resting; most > 0.
  std::uint64_t reserve(std::uint64_t most, TimePoint now);
  // Called when the reserve of another worker has timed out. This worker becomes idle too if it was
  // resting all that time, since it would have waited for the same jobs.
  void share_idleness_of(const Worker& other);
  // Starts no more commands, and leaves unless it is at work. Jobs without a command return to the
  // queue when the connection closes.
  void stop();
  // Closes the connection, which returns the jobs; a settling job is reported as lost.
  // Precondition: no command runs.
  void leave();
  // Sends SIGTERM to the commands now and SIGKILL later; their jobs return unchanged. Returns false
  // if no command runs.
  bool end_commands(TimePoint now);

  // When to call serve() even if no descriptor is ready.
  std::optional<TimePoint> due() const;
  // Handles ready descriptors and due timers. Starts at most `most` commands and returns their
  // number; input that would start more waits for the next tick.
  std::size_t serve(std::size_t most, TimePoint now);

 private:
  // A job, from its reservation to the reply that completes it.
  struct Task {
    enum class State : std::uint8_t {
      looking,   // waits for the stats of the job
      running,   // the command runs
      settling,  // waits for the reply to delete, release or bury
      done,      // to be removed
    };

    State state = State::looking;
    JobReport report;  // the known facts about the job
    std::string body;  // until the command has it
    std::uint64_t priority = 0;
    std::uint64_t releases = 0;
    Clock::duration touch_every{};
    bool ours = false;       // as far as known, the server has given it to no other client
    bool goes_back = false;  // returns unchanged, however the command ends

    std::optional<Command> command;
    client::EventLoop::Watch watch;
    bool has_ended = false;
    TimePoint started;
    std::optional<TimePoint> touch_at;
    std::optional<TimePoint> overruns_at;
    std::optional<TimePoint> kill_at;
    bool terminated = false;
    bool overran = false;
  };
  // A pending reply. The server replies in the order of the commands.
  struct Due {
    enum class Kind : std::uint8_t { watch, capabilities, reserve, job, stats, touch, final };

    Kind kind;
    JobId job = 0;  // of stats, touch and final
  };

  void receive(std::size_t most, TimePoint now);
  void take(const client::Reply& answer, TimePoint now);
  void take_greeting_reply(const client::Reply& answer, Due::Kind kind, TimePoint now);
  void take_reserve_reply(const client::Reply& answer, TimePoint now);
  void take_job(const client::Reply& answer);
  void take_stats_reply(Task& task, const client::Reply& answer, TimePoint now);
  void take_final_reply(Task& task, const client::Reply& answer);
  void take_touch_reply(Task& task, const client::Reply& answer, TimePoint now);
  void start(Task& task, const client::StatsBlock& stats, TimePoint now);
  std::optional<CannotRun> start_command(Task& task, const client::StatsBlock& stats);
  void do_what_is_due(Task& task, TimePoint now);
  // Sends SIGTERM, once, and arms the timer for SIGKILL.
  void terminate(Task& task, TimePoint now);
  void take_ending(Task& task, TimePoint now);
  void settle(Task& task, const Decision& decision);
  // Reports the job and marks it as done.
  void finish(Task& task, std::string_view outcome, std::string_view why = {});
  // Removes the jobs that are done; a worker without jobs rests, or is away.
  void remove_done(TimePoint now);
  void rest(TimePoint now);
  Task* find(JobId job);
  bool has(Task::State state) const;
  // Sends a command, given without its line end.
  void send(const std::string& command, Due due);
  void send_text(const std::string& commands);
  void lose(const Error& error);
  void lose_by_reply(const client::Reply& answer);

  const Plan& plan_;
  const Report& report_;
  client::EventLoop& loop_;
  State state_ = State::away;
  std::optional<client::Connection> connection_;
  client::EventLoop::Watch connection_watch_;  // destroyed before the connection
  bool has_input_ = false;
  bool has_batches_ = false;  // the server knows reserve-batch with a timeout
  std::optional<Error> loss_;
  std::deque<Due> due_replies_;
  std::uint64_t promised_ = 0;  // jobs that the reserve may still bring
  std::list<Task> tasks_;       // a list, because the event loop refers to its elements
  std::size_t started_ = 0;     // commands started in this tick
  bool idle_ = false;
  TimePoint since_;  // start of resting or waiting
  TimePoint waited_since_;
  std::uint64_t worked_ = 0;
  std::optional<CannotRun> cannot_run_;
};

}  // namespace tubed::tubectl::work
