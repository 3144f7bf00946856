// Worker: one connection that takes a job at a time, and the command that runs for the job.
//
// It owns the connection, the job and the command. The WorkerPool owns the worker and decides what
// concerns several workers: it connects, and says when to reserve and when to leave.
//
//   away ── greet ─▶ greeting ─▶ resting ─ reserve ▶ waiting ─▶ looking ─▶ running ─▶ settling
//                                   ▲─────────────────────────────┴───────────┴──────────┘
//
// Invariants: the worker holds a job exactly while looking, running or settling; a command exists
// exactly while running. When the connection is lost, the worker becomes away, except while
// running: then the command goes on without a connection, and the server gives the job to another
// worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "client/address.h"
#include "client/connection.h"
#include "client/event_loop.h"
#include "client/stats_block.h"
#include "engine/types.h"
#include "tubectl/work/command.h"
#include "tubectl/work/decision.h"
#include "tubectl/work/report.h"

namespace tubed::tubectl::work {

using client::Clock;
using client::TimePoint;

// The parameters that all workers of a run share.
struct Plan {
  client::Address server;
  std::vector<std::string> tubes;
  CommandLine command_line;
  Policy policy;
  std::optional<Clock::duration> longest_run;
  Clock::duration kill_after{};  // from SIGTERM to SIGKILL
  // How long a reserve waits at the server; nothing: without limit.
  std::optional<std::uint32_t> wait_seconds;
};

class Worker {
 public:
  enum class State : std::uint8_t {
    away,      // no connection
    greeting,  // waits for the replies to watch and ignore
    resting,   // nothing to do
    waiting,   // in a reserve
    looking,   // holds a job, and waits for its stats
    running,   // the command runs
    settling,  // waits for the reply to delete, release or bury
  };

  // `plan`, `report` and `loop` outlive the worker.
  Worker(const Plan& plan, const Report& report, client::EventLoop& loop)
      : plan_(plan), report_(report), loop_(loop) {}

  State state() const { return state_; }
  // The last reserve timed out, and no job has arrived since.
  bool idle() const { return idle_; }
  // Number of jobs whose command has ended.
  std::uint64_t worked() const { return worked_; }
  // Why commands cannot be started at all; the worker holds no job then.
  const std::optional<CannotRun>& cannot_run() const { return cannot_run_; }
  // Why the connection was lost. Returns each loss once.
  std::optional<Error> take_loss() { return std::exchange(loss_, std::nullopt); }

  // Uses this connection. Precondition: away.
  void greet(client::Connection connection);
  // Precondition: resting.
  void reserve();
  // Closes the connection, and so gives the job back; a settling job is reported as lost.
  // Precondition: not running.
  void leave();
  // Sends SIGTERM now and SIGKILL later; the job goes back unchanged. Precondition: running.
  void end_command(TimePoint now);

  // When serve() has work even if no descriptor is ready.
  std::optional<TimePoint> due() const;
  // Handles ready descriptors and due timers. Without `may_read` input stays in the socket until
  // the next tick.
  void serve(bool may_read, TimePoint now);

 private:
  struct HeldJob {
    JobReport report;  // the known facts about the job
    std::string body;  // until the command has it
    std::uint64_t priority = 0;
    std::uint64_t releases = 0;
    Clock::duration touch_every{};
    bool ours = false;       // as far as is known, the server has given it to no other client
    bool goes_back = false;  // unchanged, however the command ends
  };
  struct Run {
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

  void receive(TimePoint now);
  void take(const client::Reply& answer, TimePoint now);
  void take_watch_reply(const client::Reply& answer);
  void take_reserve_reply(const client::Reply& answer, TimePoint now);
  void take_stats_reply(const client::Reply& answer, TimePoint now);
  void take_final_reply(const client::Reply& answer);
  void take_touch_reply(const client::Reply& answer, TimePoint now);
  void start(const client::StatsBlock& stats, TimePoint now);
  std::optional<CannotRun> start_command(const client::StatsBlock& stats);
  void do_what_is_due(TimePoint now);
  // Sends SIGTERM, once, and arms the timer for SIGKILL.
  void terminate(TimePoint now);
  void take_ending(TimePoint now);
  void settle(const Decision& decision);
  // Reports the job; the worker can take the next job.
  void finish(std::string_view outcome, std::string_view why = {});
  // A command, without its line end.
  void send(const std::string& command);
  void lose(const Error& error);
  void lose_by_reply(const client::Reply& answer);

  const Plan& plan_;
  const Report& report_;
  client::EventLoop& loop_;
  State state_ = State::away;
  std::optional<client::Connection> connection_;
  client::EventLoop::Watch connection_watch_;  // destroyed before the connection
  bool connection_ready_ = false;
  std::optional<Error> loss_;
  std::size_t replies_due_ = 0;  // while greeting
  std::size_t touches_ = 0;      // touches without a reply yet
  bool idle_ = false;
  std::uint64_t worked_ = 0;
  std::optional<CannotRun> cannot_run_;
  HeldJob job_;
  Run run_;
};

}  // namespace tubed::tubectl::work
