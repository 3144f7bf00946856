#include "tests/simulation/operator.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "os/exit_codes.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/uv.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

// The time that a drain or a stop may take beyond its limits: a process may get no processor time
// for part of it.
constexpr Duration kSlack = 1s;
// The server counts from the beginning of a tick.
constexpr Duration kTick = 1ms;
constexpr Duration kLongestStall = 100ms;

constexpr std::string_view kNotReloaded = " error not reloaded";
constexpr std::string_view kInterrupted = " error stopped while the journal was being written";

bool has(std::string_view line, std::string_view text) {
  return line.find(text) != std::string_view::npos;
}

}  // namespace

Operator::Operator(World& world, Knowledge& known, Settings file, bool acts, Roles* roles)
    : world_(world),
      known_(known),
      chance_(world.seed(), "operator"),
      file_(std::move(file)),
      acts_(acts),
      roles_(roles) {
  if (roles_ != nullptr) roles_->add_to(file_);
  if (!acts_) return;
  known_.conditions.may_refuse_puts = true;
  file_.shutdown_timeout = 200ms;
}

// --- The process

void Operator::begin_process() {
  if (acts_) change_file();
  ++known_.process;
  if (std::exchange(known_.may_refuse, false)) known_.refused_before = world_.now();
  take_settings();
  drain_ = {.active = false, .since = world_.now(), .changed = world_.now()};
  has_failed_read_ = has_drained_ = drain_timed_out_ = false;
  may_be_interrupted_ = false;
  stop_sent_.reset();
  stopping_since_.reset();
  held_.reset();
  note_giving();
  process_ = std::make_shared<int>(0);
}

void Operator::begin_serving(const engine::Engine& engine) {
  engine_ = &engine;
  known_.drain = {.active = false, .since = world_.now()};
  known_.serves = true;
  known_.stopping_since.reset();
  known_.conditions.is_stopping = false;
  known_.engine = engine_;
  if (acts_) act_later();
}

void Operator::end_process() {
  process_.reset();
  engine_ = known_.engine = nullptr;
  known_.half_closed.clear();
  known_.serves = false;
}

void Operator::on_drain(bool draining) {
  drain_ = {.active = draining, .since = world_.now(), .changed = world_.now()};
  known_.drain = {.active = draining, .since = world_.now()};
  note_giving();
}

void Operator::note_giving() {
  Time& since = known_.conditions.gives_since;
  if (refuses_reserves()) {
    since = kNever;
  } else if (since == kNever) {
    since = world_.now();
  }
}

Result<Settings> Operator::read_file() {
  if (has_failed_read_) return Error{"the file of the settings is being written"};
  take_settings();
  drain_.changed = world_.now();
  note_giving();
  return file_;
}

void Operator::take_settings() {
  constexpr std::uint32_t kMany = 100;
  in_force_ = file_;
  if (roles_ != nullptr) roles_->begin(in_force_);
  known_.may_refuse |= in_force_.connections < kMany;
}

void Operator::stop_process() {
  world_.note("SIGTERM");
  if (!stop_sent_) stop_sent_ = world_.now();
  raise_signal(SIGTERM);
  if (!acts_ || !chance_.percent(25)) return;
  world_.after(chance_.up_to(10ms), [this, process = std::weak_ptr(process_)] {
    if (process.expired()) return;
    world_.note("SIGTERM");
    may_be_interrupted_ = true;
    raise_signal(SIGTERM);
  });
}

// --- What it does

void Operator::act_later() {
  world_.after(chance_.up_to(60ms), [this, process = std::weak_ptr(process_)] {
    if (process.expired()) return;
    act();
    if (!process.expired()) act_later();
  });
}

void Operator::act() {
  const bool is_left_out = !Reductions::keeps(known_.reductions.acts, ++acts_done_);
  const auto choice = chance_.below(100);
  if (choice < 25) {
    send_signal(SIGUSR1, "SIGUSR1", is_left_out);
  } else if (choice < 40) {
    send_signal(SIGUSR2, "SIGUSR2", is_left_out);
  } else if (choice < 75) {
    has_failed_read_ = chance_.percent(10);
    if (!has_failed_read_) change_file();
    send_signal(SIGHUP, "SIGHUP", is_left_out);
  } else if (choice < 90) {
    const Duration by = chance_.up_to(2h) - 1h;
    if (is_left_out) return;
    world_.note(fmt::format("the wall clock is stepped by {} ms", by / 1ms));
    Machine::current().step_wall_clock(by);
    known_.conditions.clock_stepped = world_.now();
  } else {
    const Duration stall = chance_.up_to(kLongestStall);
    if (is_left_out) return;
    world_.note(fmt::format("the process stalls for {} us", stall / 1us));
    world_.pass(stall);
    known_.conditions.stalls.push_back({world_.now(), stall});
  }
}

void Operator::send_signal(int number, std::string_view name, bool is_left_out) {
  if (is_left_out) return;
  world_.note(name);
  raise_signal(number);
}

void Operator::change_file() {
  const auto any = [this](auto& setting, const auto& values) {
    if (chance_.percent(30)) setting = chance_.one_of(values);
  };
  any(file_.drain_exit, std::array{DrainExit::never, DrainExit::when_idle, DrainExit::when_idle,
                                   DrainExit::when_empty});
  any(file_.drain_reserves, std::array{DrainReserves::refuse, DrainReserves::serve});
  any(file_.drain_timeout, std::array<Duration, 4>{0ms, 20ms, 60ms, 200ms});
  any(file_.shutdown_timeout, std::array<Duration, 3>{20ms, 100ms, 300ms});
  any(file_.idle_timeout, std::array<Duration, 3>{0ms, 20ms, 500ms});
  any(file_.stall_timeout, std::array<Duration, 2>{30ms, 10s});
  any(file_.connections, std::array<std::uint32_t, 4>{2, 4, 100, 1000});
  any(file_.queue.job_bytes, std::array<std::uint32_t, 3>{100, 5'000, 10'000});
  any(file_.queue.job_memory_bytes, std::array<std::uint64_t, 3>{10'000, 1 << 20, 1 << 30});
  any(file_.queue.tubes, std::array<std::uint32_t, 2>{4, 100'000});
  any(file_.queue.policies, std::array<std::uint32_t, 2>{2, 10'000});
  any(file_.output_bytes, std::array<std::uint64_t, 2>{5'000, 1 << 20});
  any(file_.output_memory, std::array<std::uint64_t, 2>{20'000, 64 << 20});
  if (roles_ != nullptr) roles_->change(file_, chance_);
  any(file_.journal_max_bytes, std::array<std::uint64_t, 2>{0, 64 << 20});
}

// --- What it sees

void Operator::take_line(std::string_view line) {
  if (has(line, " info stopping")) {
    stopping_since_ = known_.stopping_since = world_.now();
    known_.conditions.is_stopping = true;
    known_.serves = false;
  }
  if (has(line, " info drained")) {
    has_drained_ = true;
    check_drained();
  }
  if (has(line, " warning drain.timeout is over")) {
    drain_timed_out_ = true;
    const bool is_early = world_.now() + kTick < drain_.since + in_force_.drain_timeout;
    if (!ends_by_drain() || in_force_.drain_timeout == Duration::zero() || is_early)
      world_.fail(fmt::format("drain.timeout is over {} us after the drain began instead of {} us",
                              (world_.now() - drain_.since) / 1us, in_force_.drain_timeout / 1us));
  }
  if (has(line, " error ") && !is_explained(line)) world_.fail(fmt::format("the log: {}", line));
}

// Errors that are not faults: a reload from an unreadable file, and the end of a process by a
// second signal or by timeouts.shutdown.
bool Operator::is_explained(std::string_view line) const {
  if (has(line, kNotReloaded)) return has_failed_read_;
  if (!has(line, kInterrupted)) return false;
  return may_be_interrupted_ ||
         (stopping_since_ && world_.now() + kTick >= *stopping_since_ + in_force_.shutdown_timeout);
}

// --- What it judges

bool Operator::ends_by_drain() const {
  return drain_.active && in_force_.drain_exit != DrainExit::never;
}

bool Operator::refuses_reserves() const {
  return drain_.active && in_force_.drain_exit == DrainExit::when_idle &&
         in_force_.drain_reserves == DrainReserves::refuse;
}

void Operator::check_drained() {
  if (!ends_by_drain() || engine_ == nullptr) return world_.fail("it has drained without a drain");
  const auto jobs = engine_->info().jobs;
  const std::uint64_t left =
      in_force_.drain_exit == DrainExit::when_idle ? jobs.reserved : jobs.total();
  if (left > 0) world_.fail(fmt::format("it has drained, and {} jobs are left", left));
}

void Operator::check() {
  const Time now = world_.now();
  const auto check_end = [&](Time begin, Duration limit, std::string_view what) {
    if (now > begin + limit + 2 * in_force_.shutdown_timeout + kSlack)
      world_.fail(fmt::format("{} has not ended", what));
  };
  if (stopping_since_) {
    check_end(*stopping_since_, {}, "the stop");
  } else if (stop_sent_) {
    check_end(*stop_sent_, {}, "the process");
  } else if (ends_by_drain() && in_force_.drain_timeout > Duration::zero()) {
    check_end(drain_.changed, in_force_.drain_timeout, "the drain");
  }
  // No client may get a job.
  if (!refuses_reserves() || stopping_since_) return held_.reset();
  const std::uint64_t held = engine_->info().jobs.reserved;
  if (held_ && held_since_ == drain_.changed && held > *held_)
    world_.fail("a job was given out in a drain that refuses reserves");
  held_ = held;
  held_since_ = drain_.changed;
}

void Operator::check_end(int code, bool at_once) {
  if (!stop_sent_ && !has_drained_ && !drain_timed_out_) world_.fail("the process ends by itself");
  const int expected = drain_timed_out_ ? os::kExitDrainTimedOut : 0;
  const bool is_interrupted = at_once && code == os::kExitJournalFailed;
  if (code != expected && !is_interrupted)
    world_.fail(fmt::format("the process ends with {} instead of {}", code, expected));
}

}  // namespace tubed::simulation
