// Slot: one connection that takes a job at a time, and the command that works on it.
//
// It owns the connection, the job and the command. It decides nothing that concerns the other
// slots: who owns it connects, and says when to reserve and when to leave, and polls for it.
//
//   away ── greet ─▶ greeting ─▶ resting ─ reserve ▶ waiting ─▶ looking ─▶ running ─▶ settling
//                                   ▲─────────────────────────────┴───────────┴──────────┘
//
// Invariants: a job is held exactly while looking, running or settling; there is a command exactly
// while running. A connection that is lost leads to away, but while running: then the command goes
// on without one, and the job is another worker's.
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
#include "tubectl/work/report.h"
#include "tubectl/work/verdict.h"

namespace tubed::tubectl::work {

using Clock = std::chrono::steady_clock;
using Moment = Clock::time_point;

// What all slots of a run have in common.
struct Plan {
  client::Address server;
  std::vector<std::string> tubes;
  CommandLine command_line;
  Policy policy;
  std::optional<Clock::duration> longest_run;
  Clock::duration kill_after{};  // from SIGTERM to SIGKILL
  // How long the server keeps a reserve waiting; nothing: for ever.
  std::optional<std::uint32_t> wait_seconds;
};

class Slot {
 public:
  enum class State : std::uint8_t {
    away,      // no connection
    greeting,  // tells which tubes to watch
    resting,   // has nothing to do
    waiting,   // in a reserve
    looking,   // has a job, and asks what is known of it
    running,   // the command works on it
    settling,  // has told the server what becomes of it
  };

  Slot(const Plan& plan, const Report& report, client::EventLoop& loop)
      : plan_(plan), report_(report), loop_(loop) {}

  State state() const { return state_; }
  bool holds_job() const { return state_ >= State::looking; }
  // Nothing has come for as long as it wanted to wait, and nothing since.
  bool idle() const { return idle_; }
  // Jobs whose command has ended.
  std::uint64_t worked() const { return worked_; }
  // Why no command can be started at all; the slot holds no job then.
  const std::optional<CannotRun>& cannot_run() const { return cannot_run_; }
  // Why the connection ended; asking takes it.
  std::optional<Error> take_loss() { return std::exchange(loss_, std::nullopt); }

  // Goes on with this connection. Precondition: away.
  void greet(client::Connection connection);
  // Precondition: resting.
  void reserve();
  // Gives up the connection, and with it the job; one that is settling is reported as lost.
  // Precondition: not running.
  void leave();
  // SIGTERM now, SIGKILL later; the job goes back as it is. Precondition: running.
  void end_command(Moment now);

  // When attend() has something to do though the event loop has found nothing.
  std::optional<Moment> due() const;
  // Handles what the event loop has found since the last call, and what is due. Without `may_read`
  // input stays in the socket until the next turn.
  void attend(bool may_read, Moment now);

 private:
  void receive(Moment now);
  void take(const client::Reply& answer, Moment now);
  void greeted(const client::Reply& answer);
  void reserved(const client::Reply& answer, Moment now);
  void looked(const client::Reply& answer, Moment now);
  void settled(const client::Reply& answer);
  void touched(const client::Reply& answer, Moment now);
  void start(const client::StatsBlock& stats, Moment now);
  void do_what_is_due(Moment now);
  // SIGTERM, once; and SIGKILL later.
  void terminate(Moment now);
  void ended(Moment now);
  void settle(const Verdict& verdict);
  // Reports the job. The next one may come.
  void finish(std::string_view outcome, std::string_view why = {});
  // A command, without its line end.
  void send(const std::string& command);
  void lose(const Error& error);
  void lose_to(const client::Reply& answer);

  const Plan& plan_;
  const Report& report_;
  client::EventLoop& loop_;
  State state_ = State::away;
  std::optional<client::Connection> connection_;
  client::EventLoop::Watch connection_watch_;
  bool connection_ready_ = false;
  std::optional<Error> loss_;
  std::size_t answers_due_ = 0;  // of greeting
  bool idle_ = false;
  std::uint64_t worked_ = 0;
  std::optional<CannotRun> cannot_run_;

  // The job. `told_` is what is known of it so far.
  JobReport told_;
  std::string body_;  // until the command has it
  std::uint64_t priority_ = 0;
  std::uint64_t releases_ = 0;
  Clock::duration touch_every_{};
  bool ours_ = false;        // as far as is known, the server gives it to nobody else
  bool goes_back_ = false;   // whatever the command makes of it
  std::size_t touches_ = 0;  // that are not answered

  // What works on it.
  std::optional<Command> command_;
  client::EventLoop::Watch command_watch_;
  bool command_ended_ = false;
  Moment started_;
  std::optional<Moment> touch_at_;
  std::optional<Moment> overruns_at_;
  std::optional<Moment> kill_at_;
  bool terminated_ = false;
  bool overran_ = false;
};

}  // namespace tubed::tubectl::work
