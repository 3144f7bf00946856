#include "tubectl/work/slot.h"

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

// Who waits in a reserve for days is to notice that the server's machine is gone.
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

void Slot::greet(client::Connection connection) {
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
  answers_due_ = plan_.tubes.size();
  std::string greeting;
  for (const auto& tube : plan_.tubes) greeting += fmt::format("watch {}\r\n", tube);
  if (std::ranges::count(plan_.tubes, kDefaultTube) == 0) {
    ++answers_due_;
    greeting += fmt::format("ignore {}\r\n", kDefaultTube);
  }
  if (auto sent = connection_->send(greeting); !sent) lose(sent.error());
}

void Slot::reserve() {
  TUBED_ASSERT(state_ == State::resting);
  state_ = State::waiting;
  if (!plan_.wait_seconds) return send("reserve");
  // Who was told once that there is nothing does not ask again and again at once.
  const std::uint32_t least = idle_ ? 1 : 0;
  send(fmt::format("reserve-with-timeout {}", std::max(*plan_.wait_seconds, least)));
}

void Slot::leave() {
  TUBED_ASSERT(state_ != State::running);
  if (state_ == State::settling) {
    finish("lost", "tubectl was told to end before the server had answered");
  }
  connection_watch_.reset();
  connection_.reset();
  touches_ = 0;
  state_ = State::away;
  idle_ = false;
}

void Slot::end_command(Moment now) {
  goes_back_ = true;
  terminate(now);
}

std::optional<Moment> Slot::due() const {
  std::optional<Moment> first;
  for (const auto& moment : {touch_at_, overruns_at_, kill_at_}) {
    if (moment && (!first || *moment < *first)) first = moment;
  }
  return first;
}

void Slot::attend(bool may_read, Moment now) {
  if (std::exchange(connection_ready_, false) && may_read) receive(now);
  if (state_ != State::running) return;
  if (std::exchange(command_ended_, false)) return ended(now);
  do_what_is_due(now);
}

// --- What the server says

void Slot::receive(Moment now) {
  while (connection_) {
    auto answer = connection_->take();
    if (!answer) return lose(answer.error());
    if (!answer->has_value()) return;
    take(**answer, now);
  }
}

void Slot::take(const client::Reply& answer, Moment now) {
  if (touches_ > 0) {
    --touches_;
    return touched(answer, now);
  }
  switch (state_) {
    case State::greeting:
      return greeted(answer);
    case State::waiting:
      return reserved(answer, now);
    case State::looking:
      return looked(answer, now);
    case State::settling:
      return settled(answer);
    case State::away:
    case State::resting:
    case State::running:
      return lose_to(answer);
  }
}

void Slot::greeted(const client::Reply& answer) {
  if (!answer.is("WATCHING")) return lose_to(answer);
  if (--answers_due_ == 0) state_ = State::resting;
}

void Slot::reserved(const client::Reply& answer, Moment now) {
  idle_ = answer.is(word::kTimedOut);
  if (idle_) {
    state_ = State::resting;
    return;
  }
  if (!answer.is("RESERVED")) return lose_to(answer);
  told_ = JobReport();
  told_.id = answer.number();
  body_ = answer.body;
  started_ = now;
  state_ = State::looking;
  send(fmt::format("stats-job {}", told_.id));
}

void Slot::looked(const client::Reply& answer, Moment now) {
  if (!answer.is("OK") && !answer.is(word::kNotFound)) return lose_to(answer);
  const client::StatsBlock stats(answer.body);
  // Else its TTR was over before anybody looked. Who has it by now is not told: the first touch
  // tells that. (To touch it here already would be surer, but beanstalkd 1.12 then lets a job that
  // is never touched again expire no more.)
  if (stats.text("state") == "reserved") return start(stats, now);
  state_ = State::resting;
}

void Slot::touched(const client::Reply& answer, Moment now) {
  if (answer.is(word::kTouched)) return;
  if (!answer.is(word::kNotFound)) return lose_to(answer);
  // While settling, the next answer says the same.
  if (state_ != State::running) return;
  ours_ = false;
  told_.why = kTimeIsOver;
  touch_at_.reset();
  terminate(now);
}

void Slot::settled(const client::Reply& answer) {
  if (answer.is("DELETED")) return finish("deleted");
  if (answer.is("RELEASED")) return finish("released");
  if (answer.is(word::kBuried)) return finish("buried");
  if (answer.is(word::kNotFound)) return finish("lost", kTimeIsOver);
  lose_to(answer);
}

// --- The command

void Slot::start(const client::StatsBlock& stats, Moment now) {
  told_.tube = stats.text("tube").value_or("");
  priority_ = stats.count("pri");
  releases_ = stats.count("releases");
  // Three touches go into a TTR: one may be late.
  touch_every_ =
      std::chrono::milliseconds(1000 * std::max<std::uint64_t>(1, stats.count("ttr")) / 3);
  auto started = Command::start(plan_.command_line, body_, variables_of(told_, stats));
  body_ = std::string();
  if (auto* const command = std::get_if<Command>(&started)) {
    auto watch = loop_.watch(command->descriptor(), [this](client::EventLoop::Ready) {
      command_ended_ = true;
      return Result<void>();
    });
    if (watch) {
      command_watch_ = std::move(*watch);
    } else {
      command->signal(SIGKILL);
      command->end();
      started = CannotRun{kExitFailure, watch.error().message};
    }
  }
  if (auto* const refused = std::get_if<CannotRun>(&started)) {
    cannot_run_ = std::move(*refused);
    told_.outcome = "returned";
    told_.why = cannot_run_->reason;
    report_.job(told_);
    return leave();
  }
  command_.emplace(std::move(std::get<Command>(started)));
  state_ = State::running;
  ours_ = true;
  goes_back_ = terminated_ = overran_ = false;
  started_ = now;
  touch_at_ = now + std::min(touch_every_, time_to_first_touch(stats));
  if (plan_.longest_run) overruns_at_ = now + *plan_.longest_run;
}

void Slot::do_what_is_due(Moment now) {
  if (kill_at_ && *kill_at_ <= now) {
    kill_at_.reset();
    command_->signal(SIGKILL);
  }
  if (overruns_at_ && *overruns_at_ <= now) {
    overruns_at_.reset();
    overran_ = true;
    terminate(now);
  }
  if (touch_at_ && *touch_at_ <= now) {
    touch_at_ = now + touch_every_;
    ++touches_;
    send(fmt::format("touch {}", told_.id));
  }
}

void Slot::terminate(Moment now) {
  TUBED_ASSERT(state_ == State::running);
  if (std::exchange(terminated_, true)) return;
  overruns_at_.reset();
  kill_at_ = now + plan_.kill_after;
  command_->signal(SIGTERM);
}

void Slot::ended(Moment now) {
  told_.ending = command_->end();
  told_.ending->overran = overran_;
  told_.seconds = std::chrono::duration<double>(now - started_).count();
  command_watch_.reset();
  command_.reset();
  touch_at_ = overruns_at_ = kill_at_ = std::nullopt;
  ++worked_;
  if (!ours_) {
    finish("lost", told_.why);
  } else if (goes_back_) {
    // To close the connection leaves its priority and its counts as they are.
    finish("returned", "tubectl was told to end");
    leave();
  } else {
    settle(judge(plan_.policy, *told_.ending, releases_));
  }
}

void Slot::settle(const Verdict& verdict) {
  state_ = State::settling;
  told_.delay_seconds = verdict.delay_seconds;
  switch (verdict.fate) {
    case Fate::delete_job:
      return send(fmt::format("delete {}", told_.id));
    case Fate::release:
      return send(fmt::format("release {} {} {}", told_.id, priority_, verdict.delay_seconds));
    case Fate::bury:
      return send(fmt::format("bury {} {}", told_.id, priority_));
  }
}

void Slot::finish(std::string_view outcome, std::string_view why) {
  told_.outcome = outcome;
  told_.why = why;
  report_.job(told_);
  state_ = connection_ ? State::resting : State::away;
}

// --- The connection

void Slot::send(const std::string& command) {
  if (auto sent = connection_->send(command + "\r\n"); !sent) lose(sent.error());
}

void Slot::lose(const Error& error) {
  connection_watch_.reset();
  connection_.reset();
  loss_ = error;
  touches_ = 0;
  idle_ = false;
  if (state_ == State::running) {
    ours_ = false;
    told_.why = "the connection was lost while the command ran";
    touch_at_.reset();
  } else if (state_ == State::settling) {
    finish("lost", "the connection was lost before the server had answered");
  } else {
    state_ = State::away;
  }
}

void Slot::lose_to(const client::Reply& answer) {
  lose(Error{fmt::format("the server answered \"{}\"", answer.line)});
}

}  // namespace tubed::tubectl::work
