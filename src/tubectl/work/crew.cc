#include "tubectl/work/crew.h"

#include <algorithm>

#include <fmt/format.h>

#include "tubectl/commands/command.h"
#include "tubectl/exit_codes.h"

namespace tubed::tubectl::work {
namespace {

using std::chrono::milliseconds;

constexpr Clock::duration kFirstPause = milliseconds(100);
constexpr Clock::duration kLongestPause = std::chrono::seconds(5);
// Commands that a turn starts: to start one takes a while, and others are to be touched meanwhile.
constexpr std::size_t kMostStarts = 16;

using State = Slot::State;

// To end now would leave something half done.
bool is_at_work(const Slot& slot) {
  return slot.state() == State::running || slot.state() == State::settling;
}

// It has a job, or may be given one, that is not counted as worked on.
bool may_yet_work(const Slot& slot) {
  return slot.state() == State::waiting || slot.state() == State::looking ||
         slot.state() == State::running;
}

}  // namespace

Crew::Crew(const Plan& plan, const Shift& shift, const Report& report)
    : plan_(plan), shift_(shift), report_(report), connector_(plan.server) {}

int Crew::run(client::SignalInput& signals) {
  auto loop = client::EventLoop::create();
  if (!loop) return fail(kExitFailure, loop.error().message);
  loop_ = std::move(*loop);
  auto watch = loop_->watch(signals.descriptor(), [this, &signals](client::EventLoop::Ready) {
    if (signals.take()) told_to_end();
    return Result<void>();
  });
  if (!watch) return fail(kExitFailure, watch.error().message);
  signals_watch_ = std::move(*watch);
  for (std::size_t i = 0; i < shift_.slots; ++i) slots_.emplace_back(plan_, report_, *loop_);
  now_ = connect_at_ = Clock::now();
  pause_ = kFirstPause;
  for (;;) {
    if (stopping_) leave();
    if (const auto code = ended()) return *code;
    if (!stopping_) {
      connect();
      reserve();
      if (stopping_) continue;
    }
    if (const auto turned = turn(); !turned) return fail(kExitFailure, turned.error().message);
  }
}

void Crew::connect() {
  if (now_ < connect_at_ || !wants_connection()) return;
  if (auto started = connector_.start(); !started) return lost(started.error());
  auto watch = loop_->watch(connector_.descriptor(), [this](client::EventLoop::Ready) {
    connector_done_ = true;
    return Result<void>();
  });
  if (watch) {
    connector_watch_ = std::move(*watch);
  } else {
    connector_.abandon();
    lost(watch.error());
  }
}

void Crew::reserve() {
  std::uint64_t left = jobs_left();
  for (Slot& slot : slots_) {
    if (slot.state() != State::resting || left == 0) continue;
    slot.reserve();
    --left;
  }
}

// A job that a server gives to one of them at this moment goes back with the connection.
void Crew::leave() {
  for (Slot& slot : slots_) {
    if (slot.state() != State::away && !is_at_work(slot)) slot.leave();
  }
}

std::optional<int> Crew::ended() {
  if (std::ranges::any_of(slots_, is_at_work)) return std::nullopt;
  if (stopping_ || is_idle()) return exit_code_;
  // Nobody is at work: all that were to be taken were worked on.
  if (jobs_left() == 0 && std::ranges::none_of(slots_, may_yet_work)) return 0;
  if (const auto moment = gives_up_at(); moment && *moment <= now_) {
    return fail(kExitUnavailable, "there is no server any more");
  }
  return std::nullopt;
}

Result<void> Crew::turn() {
  TRY(loop_->run_once(wait_until()));
  now_ = Clock::now();
  attend_slots();
  if (std::exchange(connector_done_, false)) take_connection();
  return {};
}

void Crew::attend_slots() {
  std::size_t starts = 0;
  const std::size_t first = next_;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::size_t index = (first + i) % slots_.size();
    Slot& slot = slots_[index];
    const bool may_start = slot.state() == State::looking;
    // What it has to read is there at the next turn as well.
    now_ = Clock::now();
    attend(slot, !(may_start && starts == kMostStarts));
    if (!may_start || slot.state() != State::running) continue;
    if (++starts == kMostStarts) next_ = (index + 1) % slots_.size();
  }
}

void Crew::take_connection() {
  auto connected = connector_.take();
  if (!connected) return;
  connector_watch_.reset();
  if (!*connected) return lost(connected->error());
  // Nobody may need it any more: it closes.
  if (!wants_connection()) return;
  Slot& slot = *std::ranges::find(slots_, State::away, &Slot::state);
  slot.greet(std::move(connected->value()));
  if (const auto loss = slot.take_loss()) lost(*loss);
}

void Crew::attend(Slot& slot, bool may_read) {
  const bool was_greeting = slot.state() == State::greeting;
  const bool could_run = !slot.cannot_run();
  slot.attend(may_read, now_);
  if (const auto loss = slot.take_loss()) lost(*loss);
  if (was_greeting && slot.state() == State::resting) {
    was_greeted_ = true;
    pause_ = kFirstPause;
    if (outage_since_) report_.event("connected", "connected again");
    outage_since_.reset();
  }
  if (could_run && slot.cannot_run() && exit_code_ == 0) {
    stopping_ = true;
    exit_code_ = fail(slot.cannot_run()->exit_code, slot.cannot_run()->reason);
  }
}

void Crew::told_to_end() {
  stopping_ = true;
  if (++signals_taken_ < 2) return;
  for (Slot& slot : slots_) {
    if (slot.state() == State::running) {
      slot.end_command(now_);
    } else if (slot.state() == State::settling) {
      slot.leave();
    }
  }
}

void Crew::lost(const Error& error) {
  if (!was_greeted_ && !shift_.wait_for_server) {
    if (!stopping_) exit_code_ = fail(kExitUnavailable, error.message);
    stopping_ = true;
    return;
  }
  if (!outage_since_) {
    outage_since_ = now_;
    if (!stopping_) report_.event("disconnected", error.message + "; trying again");
  }
  if (connect_at_ > now_) return;  // who loses one connection loses all at the same time
  connect_at_ = now_ + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

std::uint64_t Crew::jobs_left() const {
  if (!shift_.jobs) return UINT64_MAX;
  std::uint64_t taken = 0;
  for (const Slot& slot : slots_) {
    taken += slot.worked();
    if (may_yet_work(slot)) ++taken;
  }
  return *shift_.jobs - taken;
}

// Some have waited for as long as was wanted, and nobody who waits has waited less.
bool Crew::is_idle() const {
  if (!plan_.wait_seconds || std::ranges::none_of(slots_, &Slot::idle)) return false;
  const bool may_reserve = jobs_left() > 0;
  return std::ranges::none_of(slots_, [may_reserve](const Slot& slot) {
    if (slot.idle() || slot.state() == State::away) return false;
    return slot.state() != State::resting || may_reserve;
  });
}

bool Crew::wants_connection() const {
  return !stopping_ && !connector_.busy() && jobs_left() > 0 &&
         std::ranges::find(slots_, State::away, &Slot::state) != slots_.end();
}

// Who ends when there are no jobs does not wait for a server for ever.
std::optional<Moment> Crew::gives_up_at() const {
  if (!plan_.wait_seconds || !outage_since_ || !was_greeted_) return std::nullopt;
  for (const Slot& slot : slots_) {
    if (slot.state() != State::away) return std::nullopt;
  }
  return *outage_since_ + std::chrono::seconds(*plan_.wait_seconds);
}

std::optional<Moment> Crew::wait_until() const {
  std::optional<Moment> first = gives_up_at();
  const auto sooner = [&first](const std::optional<Moment>& moment) {
    if (moment && (!first || *moment < *first)) first = moment;
  };
  if (wants_connection()) sooner(connect_at_);
  for (const Slot& slot : slots_) sooner(slot.due());
  return first;
}

}  // namespace tubed::tubectl::work
