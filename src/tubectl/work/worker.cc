// A worker is a state machine that the pool drives. Input arrives in serve(): replies of the server
// go to take(), which chooses the handler by the state; the end of the command goes to
// take_ending(); timers go to do_what_is_due().
//
// The life of a job:
// 1. reserve() sends reserve; the reply RESERVED brings the id and the body (take_reserve_reply).
// 2. stats-job brings the tube, the TTR and the counters, which the command gets as variables
//    (take_stats_reply).
// 3. start() starts the command. Every third of the TTR do_what_is_due() sends touch, so that the
//    server does not give the job to another worker.
// 4. The command ends, and decide() chooses between delete, release and bury (take_ending).
// 5. The reply completes the job: the report is written, and the worker is resting
//    (take_final_reply, finish).
//
// A touch that is answered NOT_FOUND shows that the job was lost: the command is terminated, and
// its result is ignored. If the connection is lost while the command runs, the command is left to
// finish, since it may be in the middle of its work, and the job is reported as lost.
#include "tubectl/work/worker.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "protocol/reply.h"
#include "tubectl/exit_codes.h"

namespace tubed::tubectl::work {
namespace {

namespace word = protocol::word;

constexpr std::string_view kTimeIsOver = "its time to run was over, or it was deleted";

// A worker may wait in a reserve for days, and must notice when the machine of the server fails.
void keep_alive(const client::Connection& connection, const client::Address& server) {
  if (server.family == AF_UNIX) return;
  const int on = 1;
  const int idle_seconds = 60;
  const int between_seconds = 10;
  const int probes = 6;
  const int number = connection.descriptor();
  // If the system refuses, the connection is as good as any other.
  ::setsockopt(number, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(number, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  ::setsockopt(number, IPPROTO_TCP, TCP_KEEPINTVL, &between_seconds, sizeof between_seconds);
  ::setsockopt(number, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

// The environment of the command. The names are part of the interface and documented in tubectl(1).
Variables variables_of(const JobReport& job, const client::StatsBlock& stats) {
  return {{"TUBED_JOB_ID", std::to_string(job.id)},
          {"TUBED_TUBE", job.tube},
          {"TUBED_PRIORITY", std::to_string(stats.count("pri"))},
          {"TUBED_RESERVES", std::to_string(stats.count("reserves"))},
          {"TUBED_RELEASES", std::to_string(stats.count("releases"))},
          {"TUBED_TTR", std::to_string(stats.count("ttr"))}};
}

// Sooner than later if the job has waited for long to be looked at.
Clock::duration time_to_first_touch(const client::StatsBlock& stats) {
  const auto left = stats.number("time-left");
  // Whole seconds, cut.
  if (!left || *left + 1 >= stats.count("ttr")) return Clock::duration::max();
  return std::chrono::milliseconds(1000 * *left / 2);
}

}  // namespace

// --- What the owner asks for

void Worker::greet(client::Connection connection) {
  TUBED_ASSERT(state_ == State::away);
  keep_alive(connection, plan_.server);
  connection_.emplace(std::move(connection));
  state_ = State::greeting;
  auto watch = loop_.watch(connection_->descriptor(), [this](client::EventLoop::Ready) {
    connection_ready_ = true;
    return Result<void>();
  });
  if (!watch) return lose(watch.error());
  connection_watch_ = std::move(*watch);
  replies_due_ = plan_.tubes.size();
  std::string greeting;
  for (const auto& tube : plan_.tubes) greeting += fmt::format("watch {}\r\n", tube);
  if (std::ranges::count(plan_.tubes, kDefaultTube) == 0) {
    ++replies_due_;
    greeting += fmt::format("ignore {}\r\n", kDefaultTube);
  }
  if (auto sent = connection_->send(greeting); !sent) lose(sent.error());
}

void Worker::reserve() {
  TUBED_ASSERT(state_ == State::resting);
  state_ = State::waiting;
  if (!plan_.wait_seconds) return send("reserve");
  // After a timeout of 0 the worker waits for at least a second, so that it does not poll the
  // server.
  const std::uint32_t least = idle_ ? 1 : 0;
  send(fmt::format("reserve-with-timeout {}", std::max(*plan_.wait_seconds, least)));
}

void Worker::leave() {
  TUBED_ASSERT(state_ != State::running);
  if (state_ == State::settling) {
    finish("lost", "tubectl was ended before the server answered");
  }
  connection_watch_.reset();
  connection_.reset();
  touches_ = 0;
  state_ = State::away;
  idle_ = false;
}

void Worker::end_command(TimePoint now) {
  job_.goes_back = true;
  terminate(now);
}

std::optional<TimePoint> Worker::due() const {
  std::optional<TimePoint> first;
  for (const auto& moment : {run_.touch_at, run_.overruns_at, run_.kill_at}) {
    if (moment && (!first || *moment < *first)) first = moment;
  }
  return first;
}

void Worker::serve(bool may_read, TimePoint now) {
  if (std::exchange(connection_ready_, false) && may_read) receive(now);
  if (state_ != State::running) return;
  if (std::exchange(run_.has_ended, false)) return take_ending(now);
  do_what_is_due(now);
}

// --- What the server says

// Takes all replies that have arrived whole; reads the socket without waiting.
void Worker::receive(TimePoint now) {
  while (connection_) {
    auto answer = connection_->take();
    if (!answer) return lose(answer.error());
    if (!answer->has_value()) return;
    take(**answer, now);
  }
}

// Touches are answered in the order of the commands, so while touches_ is not 0 the next reply
// belongs to the oldest touch.
void Worker::take(const client::Reply& answer, TimePoint now) {
  if (touches_ > 0) {
    --touches_;
    return take_touch_reply(answer, now);
  }
  switch (state_) {
    case State::greeting:
      return take_watch_reply(answer);
    case State::waiting:
      return take_reserve_reply(answer, now);
    case State::looking:
      return take_stats_reply(answer, now);
    case State::settling:
      return take_final_reply(answer);
    case State::away:
    case State::resting:
    case State::running:
      return lose_by_reply(answer);
  }
}

void Worker::take_watch_reply(const client::Reply& answer) {
  if (!answer.is("WATCHING")) return lose_by_reply(answer);
  if (--replies_due_ == 0) state_ = State::resting;
}

void Worker::take_reserve_reply(const client::Reply& answer, TimePoint now) {
  idle_ = answer.is(word::kTimedOut);
  if (idle_) {
    state_ = State::resting;
    return;
  }
  if (!answer.is("RESERVED")) return lose_by_reply(answer);
  job_.report = JobReport();
  job_.report.id = answer.number();
  job_.body = answer.body;
  run_.started = now;
  state_ = State::looking;
  send(fmt::format("stats-job {}", job_.report.id));
}

void Worker::take_stats_reply(const client::Reply& answer, TimePoint now) {
  if (!answer.is("OK") && !answer.is(word::kNotFound)) return lose_by_reply(answer);
  const client::StatsBlock stats(answer.body);
  // Otherwise its TTR ended before this reply. The reply does not show which client holds the job
  // now: the first touch shows it. (A touch here would be safer, but beanstalkd 1.12 never expires
  // a job that was touched once and is not touched again.)
  if (stats.text("state") == "reserved") return start(stats, now);
  state_ = State::resting;
}

void Worker::take_touch_reply(const client::Reply& answer, TimePoint now) {
  if (answer.is(word::kTouched)) return;
  if (!answer.is(word::kNotFound)) return lose_by_reply(answer);
  // While settling, the next answer says the same.
  if (state_ != State::running) return;
  job_.ours = false;
  job_.report.why = kTimeIsOver;
  run_.touch_at.reset();
  terminate(now);
}

void Worker::take_final_reply(const client::Reply& answer) {
  if (answer.is("DELETED")) return finish("deleted");
  if (answer.is("RELEASED")) return finish("released");
  if (answer.is(word::kBuried)) return finish("buried");
  if (answer.is(word::kNotFound)) return finish("lost", kTimeIsOver);
  lose_by_reply(answer);
}

// --- The command

// A command that cannot be started is a mistake of the user or of the machine, not of the job: the
// worker leaves, which gives the job back unchanged, and the pool stops the run.
void Worker::start(const client::StatsBlock& stats, TimePoint now) {
  job_.report.tube = stats.text("tube").value_or("");
  job_.priority = stats.count("pri");
  job_.releases = stats.count("releases");
  // Three touches go into a TTR: one may be late.
  job_.touch_every =
      std::chrono::milliseconds(1000 * std::max<std::uint64_t>(1, stats.count("ttr")) / 3);
  if (auto refused = start_command(stats)) {
    cannot_run_ = std::move(refused);
    job_.report.outcome = "returned";
    job_.report.why = cannot_run_->reason;
    report_.job(job_.report);
    return leave();
  }
  state_ = State::running;
  job_.ours = true;
  job_.goes_back = false;
  run_.started = now;
  run_.touch_at = now + std::min(job_.touch_every, time_to_first_touch(stats));
  if (plan_.longest_run) run_.overruns_at = now + *plan_.longest_run;
}

// The body is released as soon as the command has it.
std::optional<CannotRun> Worker::start_command(const client::StatsBlock& stats) {
  auto started = Command::start(plan_.command_line, job_.body, variables_of(job_.report, stats));
  job_.body = std::string();
  if (auto* const refused = std::get_if<CannotRun>(&started)) return std::move(*refused);
  auto& command = std::get<Command>(started);
  auto watch = loop_.watch(command.descriptor(), [this](client::EventLoop::Ready) {
    run_.has_ended = true;
    return Result<void>();
  });
  if (!watch) {
    command.signal(SIGKILL);
    command.end();
    return CannotRun{kExitFailure, watch.error().message};
  }
  run_ = Run();
  run_.command.emplace(std::move(command));
  run_.watch = std::move(*watch);
  return std::nullopt;
}

void Worker::do_what_is_due(TimePoint now) {
  if (run_.kill_at && *run_.kill_at <= now) {
    run_.kill_at.reset();
    run_.command->signal(SIGKILL);
  }
  if (run_.overruns_at && *run_.overruns_at <= now) {
    run_.overruns_at.reset();
    run_.overran = true;
    terminate(now);
  }
  if (run_.touch_at && *run_.touch_at <= now) {
    run_.touch_at = now + job_.touch_every;
    ++touches_;
    send(fmt::format("touch {}", job_.report.id));
  }
}

// The timer for the end of a long run is no longer needed: the command is already being ended.
void Worker::terminate(TimePoint now) {
  TUBED_ASSERT(state_ == State::running);
  if (std::exchange(run_.terminated, true)) return;
  run_.overruns_at.reset();
  run_.kill_at = now + plan_.kill_after;
  run_.command->signal(SIGTERM);
}

// Precondition: the process has ended; end() does not wait.
void Worker::take_ending(TimePoint now) {
  job_.report.ending = run_.command->end();
  job_.report.ending->overran = run_.overran;
  job_.report.seconds = std::chrono::duration<double>(now - run_.started).count();
  run_.watch.reset();
  run_.command.reset();
  run_.touch_at = run_.overruns_at = run_.kill_at = std::nullopt;
  ++worked_;
  if (!job_.ours) {
    finish("lost", job_.report.why);
  } else if (job_.goes_back) {
    // To close the connection leaves its priority and its counts as they are.
    finish("returned", "tubectl was ended");
    leave();
  } else {
    settle(decide(plan_.policy, *job_.report.ending, job_.releases));
  }
}

void Worker::settle(const Decision& decision) {
  state_ = State::settling;
  job_.report.delay_seconds = decision.delay_seconds;
  switch (decision.action) {
    case FailureAction::delete_job:
      return send(fmt::format("delete {}", job_.report.id));
    case FailureAction::release:
      return send(
          fmt::format("release {} {} {}", job_.report.id, job_.priority, decision.delay_seconds));
    case FailureAction::bury:
      return send(fmt::format("bury {} {}", job_.report.id, job_.priority));
  }
}

void Worker::finish(std::string_view outcome, std::string_view why) {
  job_.report.outcome = outcome;
  job_.report.why = why;
  report_.job(job_.report);
  state_ = connection_ ? State::resting : State::away;
}

// --- The connection

void Worker::send(const std::string& command) {
  if (auto sent = connection_->send(command + "\r\n"); !sent) lose(sent.error());
}

// The reason is kept for the pool, which reports an outage once for all workers.
void Worker::lose(const Error& error) {
  connection_watch_.reset();
  connection_.reset();
  loss_ = error;
  touches_ = 0;
  idle_ = false;
  if (state_ == State::running) {
    job_.ours = false;
    job_.report.why = "the connection was lost while the command ran";
    run_.touch_at.reset();
  } else if (state_ == State::settling) {
    finish("lost", "the connection was lost before the server had answered");
  } else {
    state_ = State::away;
  }
}

void Worker::lose_by_reply(const client::Reply& answer) {
  lose(Error{fmt::format("the server answered \"{}\"", answer.line)});
}

}  // namespace tubed::tubectl::work
