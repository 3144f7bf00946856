// A worker is a state machine that the pool drives, and so is each of its jobs. Input arrives in
// serve(): each reply of the server belongs to the oldest entry of due_replies_, which names its
// handler and its job; the end of a command goes to take_ending(); timers go to do_what_is_due().
//
// The life of a job:
// 1. reserve() sends reserve, or reserve-batch for several jobs; each RESERVED brings an id and a
//    body (take_job).
// 2. stats-job brings the tube, the TTR and the counters, which the command gets as variables
//    (take_stats_reply).
// 3. start() starts the command. Every third of the TTR do_what_is_due() sends touch, which keeps
//    the server from giving the job to another worker.
// 4. The command ends, and decide() chooses between delete, release and bury (take_ending).
// 5. The reply completes the job: the report is written (take_final_reply, finish). After the last
//    job the worker is resting (remove_done).
//
// All jobs of a batch are started at once: the pool asks for no more jobs than commands may start.
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
#include "tubectl/commands/command.h"
#include "tubectl/exit_codes.h"

namespace tubed::tubectl::work {
namespace {

namespace word = protocol::word;

constexpr std::string_view kTimeIsOver = "its time to run was over, or it was deleted";
// The capability of a server whose batches can wait.
constexpr std::string_view kBatches = "reserve-batch:timeout";
constexpr std::uint32_t kLongestWait = UINT32_MAX;  // 136 years

// A worker may wait in a reserve for days, and must notice if the server's machine fails.
void keep_alive(const client::Connection& connection) {
  const int on = 1;
  const int idle_seconds = 60;
  const int between_seconds = 10;
  const int probes = 6;
  const int number = connection.descriptor();
  // Errors are ignored, also those of a unix socket: the connection works without keepalive.
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

// Half of the remaining TTR, if part of it has passed already.
Clock::duration time_to_first_touch(const client::StatsBlock& stats) {
  const auto left = stats.number("time-left");
  // time-left is rounded down to whole seconds.
  if (!left || *left + 1 >= stats.count("ttr")) return Clock::duration::max();
  return std::chrono::milliseconds(1000 * *left / 2);
}

}  // namespace

bool Worker::is_at_work() const {
  return has(Task::State::running) || has(Task::State::settling);
}

std::uint64_t Worker::unworked() const {
  return promised_ + static_cast<std::uint64_t>(std::ranges::count_if(tasks_, [](const Task& task) {
           return task.state == Task::State::looking || task.state == Task::State::running;
         }));
}

void Worker::greet(client::Connection connection) {
  TUBED_ASSERT(state_ == State::away);
  keep_alive(connection);
  connection_.emplace(std::move(connection));
  state_ = State::greeting;
  auto watch = loop_.watch(connection_->descriptor(), [this](client::EventLoop::Ready) {
    has_input_ = true;
    return Result<void>();
  });
  if (!watch) return lose(watch.error());
  connection_watch_ = std::move(*watch);
  has_batches_ = false;
  std::string greeting;
  for (const auto& tube : plan_.tubes) greeting += fmt::format("watch {}\r\n", tube);
  if (std::ranges::count(plan_.tubes, kDefaultTube) == 0) {
    greeting += fmt::format("ignore {}\r\n", kDefaultTube);
  }
  const auto watches = std::ranges::count(greeting, '\n');
  due_replies_.assign(static_cast<std::size_t>(watches), Due{Due::Kind::watch});
  if (plan_.batch > 1) {
    greeting += "capabilities\r\n";
    due_replies_.push_back({Due::Kind::capabilities});
  }
  send_text(greeting);
}

std::uint64_t Worker::reserve(std::uint64_t most, TimePoint now) {
  TUBED_ASSERT(state_ == State::resting && most > 0);
  const std::uint64_t asked = has_batches_ ? std::min(plan_.batch, most) : 1;
  state_ = State::waiting;
  since_ = waited_since_ = now;
  promised_ = asked;
  // After a timeout, waits for at least a second to avoid polling the server.
  const std::uint32_t least = idle_ ? 1 : 0;
  const std::uint32_t wait = std::max(plan_.wait_seconds.value_or(kLongestWait), least);
  if (asked > 1) {
    send(fmt::format("reserve-batch {} {}", asked, wait), {Due::Kind::reserve});
  } else if (plan_.wait_seconds) {
    send(fmt::format("reserve-with-timeout {}", wait), {Due::Kind::reserve});
  } else {
    send("reserve", {Due::Kind::reserve});
  }
  return asked;
}

void Worker::share_idleness_of(const Worker& other) {
  if (state_ == State::resting && since_ <= other.waited_since_) idle_ = true;
}

void Worker::stop() {
  std::erase_if(tasks_, [](const Task& task) { return task.state == Task::State::looking; });
  if (state_ != State::away && !is_at_work()) leave();
}

void Worker::leave() {
  TUBED_ASSERT(!has(Task::State::running));
  for (Task& task : tasks_) {
    if (task.state == Task::State::settling) {
      finish(task, "lost", "tubectl was ended before the server answered");
    }
  }
  tasks_.clear();
  connection_watch_.reset();
  connection_.reset();
  due_replies_.clear();
  promised_ = 0;
  has_input_ = false;
  state_ = State::away;
  idle_ = false;
}

bool Worker::end_commands(TimePoint now) {
  bool any = false;
  for (Task& task : tasks_) {
    if (task.state != Task::State::running) continue;
    any = true;
    task.goes_back = true;
    terminate(task, now);
  }
  return any;
}

std::optional<TimePoint> Worker::due() const {
  if (has_input_) return TimePoint::min();
  std::optional<TimePoint> first;
  for (const Task& task : tasks_) {
    for (const auto& moment : {task.touch_at, task.overruns_at, task.kill_at}) {
      if (moment && (!first || *moment < *first)) first = moment;
    }
  }
  return first;
}

std::size_t Worker::serve(std::size_t most, TimePoint now) {
  started_ = 0;
  if (std::exchange(has_input_, false)) receive(most, now);
  for (Task& task : tasks_) {
    if (task.state != Task::State::running) continue;
    if (std::exchange(task.has_ended, false)) {
      take_ending(task, now);
    } else {
      do_what_is_due(task, now);
    }
  }
  remove_done(now);
  return started_;
}

// Handles all complete replies; reads the socket without waiting.
void Worker::receive(std::size_t most, TimePoint now) {
  while (connection_) {
    const bool may_start = !due_replies_.empty() && due_replies_.front().kind == Due::Kind::stats;
    if (may_start && started_ == most) {
      has_input_ = true;  // continues in the next tick
      return;
    }
    auto answer = connection_->take();
    if (!answer) return lose(answer.error());
    if (!answer->has_value()) return;
    take(**answer, now);
  }
}

// Ignores replies about jobs that stop() has dropped.
void Worker::take(const client::Reply& answer, TimePoint now) {
  if (due_replies_.empty()) return lose_by_reply(answer);
  const Due due = due_replies_.front();
  due_replies_.pop_front();
  switch (due.kind) {
    case Due::Kind::watch:
    case Due::Kind::capabilities:
      return take_greeting_reply(answer, due.kind, now);
    case Due::Kind::reserve:
      return take_reserve_reply(answer, now);
    case Due::Kind::job:
      return take_job(answer);
    case Due::Kind::stats:
    case Due::Kind::touch:
    case Due::Kind::final:
      break;
  }
  Task* const task = find(due.job);
  if (task == nullptr) return;
  if (due.kind == Due::Kind::stats) return take_stats_reply(*task, answer, now);
  if (due.kind == Due::Kind::touch) return take_touch_reply(*task, answer, now);
  take_final_reply(*task, answer);
}

// A server that does not know `capabilities` has no batches.
void Worker::take_greeting_reply(const client::Reply& answer, Due::Kind kind, TimePoint now) {
  if (kind == Due::Kind::watch && !answer.is("WATCHING")) return lose_by_reply(answer);
  if (kind == Due::Kind::capabilities && answer.is("OK")) {
    has_batches_ = std::ranges::count(client::list_items(answer.body), kBatches) > 0;
  }
  if (due_replies_.empty()) rest(now);
}

void Worker::take_reserve_reply(const client::Reply& answer, TimePoint now) {
  const bool is_batch = answer.is("RESERVED_BATCH");
  const std::uint64_t jobs = is_batch ? answer.number() : answer.is("RESERVED") ? 1 : 0;
  idle_ = is_batch ? jobs == 0 : answer.is(word::kTimedOut);
  if (jobs > promised_ || (jobs == 0 && !idle_)) return lose_by_reply(answer);
  promised_ = jobs;
  if (idle_) return rest(now);
  state_ = State::working;
  if (!is_batch) return take_job(answer);
  due_replies_.assign(jobs, Due{Due::Kind::job});
}

void Worker::take_job(const client::Reply& answer) {
  if (!answer.is("RESERVED")) return lose_by_reply(answer);
  --promised_;
  Task& task = tasks_.emplace_back();
  task.report.id = answer.number();
  task.body = answer.body;
  send(fmt::format("stats-job {}", task.report.id), {Due::Kind::stats, task.report.id});
}

void Worker::take_stats_reply(Task& task, const client::Reply& answer, TimePoint now) {
  if (!answer.is("OK") && !answer.is(word::kNotFound)) return lose_by_reply(answer);
  const client::StatsBlock stats(answer.body);
  // Otherwise the TTR expired before this reply. The reply does not show which client holds the job
  // now; the first touch does. (A touch here would be safer, but beanstalkd 1.12 never expires a
  // job that was touched once and is not touched again.)
  if (stats.text("state") == "reserved" && !cannot_run_) return start(task, stats, now);
  task.state = Task::State::done;
}

void Worker::take_touch_reply(Task& task, const client::Reply& answer, TimePoint now) {
  if (answer.is(word::kTouched)) return;
  if (!answer.is(word::kNotFound)) return lose_by_reply(answer);
  // While settling, the reply to the final command shows the same.
  if (task.state != Task::State::running) return;
  task.ours = false;
  task.report.why = kTimeIsOver;
  task.touch_at.reset();
  terminate(task, now);
}

void Worker::take_final_reply(Task& task, const client::Reply& answer) {
  if (answer.is("DELETED")) return finish(task, "deleted");
  if (answer.is("RELEASED")) return finish(task, "released");
  if (answer.is(word::kBuried)) return finish(task, "buried");
  if (answer.is(word::kNotFound)) return finish(task, "lost", kTimeIsOver);
  lose_by_reply(answer);
}

// A command that cannot be started is a failure of the configuration or the machine, not of the
// job: the pool stops the run, and the job returns unchanged when the connection closes.
void Worker::start(Task& task, const client::StatsBlock& stats, TimePoint now) {
  task.report.tube = stats.text("tube").value_or("");
  task.priority = stats.count("pri");
  task.releases = stats.count("releases");
  // Three touches per TTR: one may be late.
  task.touch_every =
      std::chrono::milliseconds(1000 * std::max<std::uint64_t>(1, stats.count("ttr")) / 3);
  if (auto refused = start_command(task, stats)) {
    cannot_run_ = std::move(refused);
    return finish(task, "returned", cannot_run_->reason);
  }
  ++started_;
  task.state = Task::State::running;
  task.ours = true;
  task.started = now;
  task.touch_at = now + std::min(task.touch_every, time_to_first_touch(stats));
  if (plan_.longest_run) task.overruns_at = now + *plan_.longest_run;
}

// Releases the body once the command has it.
std::optional<CannotRun> Worker::start_command(Task& task, const client::StatsBlock& stats) {
  auto started = Command::start(plan_.command_line, task.body, variables_of(task.report, stats));
  task.body = std::string();
  if (auto* const refused = std::get_if<CannotRun>(&started)) return std::move(*refused);
  auto& command = std::get<Command>(started);
  auto watch = loop_.watch(command.descriptor(), [&task](client::EventLoop::Ready) {
    task.has_ended = true;
    return Result<void>();
  });
  if (!watch) {
    command.signal(SIGKILL);
    command.end();
    return CannotRun{kExitFailure, watch.error().message};
  }
  task.command.emplace(std::move(command));
  task.watch = std::move(*watch);
  return std::nullopt;
}

void Worker::do_what_is_due(Task& task, TimePoint now) {
  if (task.kill_at && *task.kill_at <= now) {
    task.kill_at.reset();
    task.command->signal(SIGKILL);
  }
  if (task.overruns_at && *task.overruns_at <= now) {
    task.overruns_at.reset();
    task.overran = true;
    terminate(task, now);
  }
  if (task.touch_at && *task.touch_at <= now) {
    task.touch_at = now + task.touch_every;
    send(fmt::format("touch {}", task.report.id), {Due::Kind::touch, task.report.id});
  }
}

// Clears the timer for the longest run, because the command is being ended already.
void Worker::terminate(Task& task, TimePoint now) {
  TUBED_ASSERT(task.state == Task::State::running);
  if (std::exchange(task.terminated, true)) return;
  task.overruns_at.reset();
  task.kill_at = now + plan_.kill_after;
  task.command->signal(SIGTERM);
}

// Precondition: the process has ended; end() does not wait.
void Worker::take_ending(Task& task, TimePoint now) {
  task.report.ending = task.command->end();
  task.report.ending->overran = task.overran;
  task.report.seconds = std::chrono::duration<double>(now - task.started).count();
  task.watch.reset();
  task.command.reset();
  task.touch_at = task.overruns_at = task.kill_at = std::nullopt;
  ++worked_;
  if (!task.ours) {
    finish(task, "lost", task.report.why);
  } else if (task.goes_back) {
    // The pool closes the connection, which leaves the priority and counters of the job unchanged.
    finish(task, "returned", "tubectl was ended");
  } else {
    settle(task, decide(plan_.policy, *task.report.ending, task.releases));
  }
}

void Worker::settle(Task& task, const Decision& decision) {
  task.state = Task::State::settling;
  task.report.delay_seconds = decision.delay_seconds;
  const JobId job = task.report.id;
  const Due due{Due::Kind::final, job};
  switch (decision.action) {
    case FailureAction::delete_job:
      return send(fmt::format("delete {}", job), due);
    case FailureAction::release:
      return send(fmt::format("release {} {} {}", job, task.priority, decision.delay_seconds), due);
    case FailureAction::bury:
      return send(fmt::format("bury {} {}", job, task.priority), due);
  }
}

void Worker::finish(Task& task, std::string_view outcome, std::string_view why) {
  task.report.outcome = outcome;
  task.report.why = why;
  report_.job(task.report);
  task.state = Task::State::done;
}

void Worker::remove_done(TimePoint now) {
  std::erase_if(tasks_, [](const Task& task) { return task.state == Task::State::done; });
  if (state_ == State::working && jobs() == 0) rest(now);
}

void Worker::rest(TimePoint now) {
  state_ = connection_ ? State::resting : State::away;
  since_ = now;
}

Worker::Task* Worker::find(JobId job) {
  const auto task = std::ranges::find_if(tasks_, [job](const Task& each) {
    return each.report.id == job && each.state != Task::State::done;
  });
  return task == tasks_.end() ? nullptr : &*task;
}

bool Worker::has(Task::State state) const {
  return std::ranges::find(tasks_, state, &Task::state) != tasks_.end();
}

void Worker::send(const std::string& command, Due due) {
  due_replies_.push_back(due);
  send_text(command + "\r\n");
}

// Sending may move input into the connection, where the event loop does not see it.
void Worker::send_text(const std::string& commands) {
  if (auto sent = connection_->send(commands); !sent) return lose(sent.error());
  if (connection_->has_input()) has_input_ = true;
}

// Keeps the reason for the pool, which reports an outage once for all workers.
void Worker::lose(const Error& error) {
  connection_watch_.reset();
  connection_.reset();
  loss_ = error;
  due_replies_.clear();
  promised_ = 0;
  has_input_ = false;
  idle_ = false;
  for (Task& task : tasks_) {
    if (task.state == Task::State::looking) {
      task.state = Task::State::done;
    } else if (task.state == Task::State::running) {
      task.ours = false;
      task.report.why = "the connection was lost while the command ran";
      task.touch_at.reset();
    } else if (task.state == Task::State::settling) {
      finish(task, "lost", "the connection was lost before the server had answered");
    }
  }
  if (state_ != State::working) state_ = State::away;
}

// Reconnecting does not change what a role may do, so the pool stops the run.
void Worker::lose_by_reply(const client::Reply& answer) {
  if (is_access_refusal(answer.line) && !cannot_run_) {
    cannot_run_ = CannotRun{kExitFailure, fmt::format("work: {}", meaning_of(answer))};
  }
  lose(Error{fmt::format("the server answered \"{}\"", answer.line)});
}

}  // namespace tubed::tubectl::work
