// The time of the queue moves in two ways. A test verb sets it (advance()), or, with an automatic
// clock, a tick begins while every client waits in a reserve: tick_began() then moves the clock to
// the next deadline, and next_deadlines() has asked the server for that tick.
//
// An event has one of three origins. Facts of the engine: a put, a deletion, a pause, and all that
// brings a job to rest. Notices: a wait has ended. Answers of observed rows: a reserve that was
// answered at once, a touch, and a move of one job.
//
// A fact about a job that came to rest has its counters and its place. The differences from the
// job's previous fact show the event (event_between). The running command does not show it: a
// delete that ends a group also brings to rest the jobs that the group held. When a policy has
// decided about a job, the engine reports that before the fact (retired()).
#include "test_mode/test_mode.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/overloaded.h"
#include "commands/conversation.h"
#include "commands/handlers.h"
#include "engine/replay.h"
#include "test_mode/state_lines.h"
#include "test_mode/table.h"

namespace tubed::test_mode {

using commands::ArgumentStorage;
using commands::BodyPlan;
using commands::Command;
using commands::Context;
using commands::Conversation;
using commands::Operation;
using commands::TestOperation;
using engine::Deadlines;
using protocol::Answer;
using protocol::Status;
namespace word = protocol::word;

namespace {

constexpr std::string_view kMoveJob = "move-job";

// Also of put-in-tube.
bool is_put(const Command& row) {
  return row.name.starts_with(word_of(Event::put));
}

// The last time of the clock. No deadline overflows: the longest delay is shorter than the rest.
constexpr Time kLatest = kNever - std::chrono::seconds((1LL << 32) + 1);
// Deadlines in a slice of an advance.
constexpr int kDeadlinesPerSlice = 1000;

Time first_of(const Deadlines& next) {
  return std::min({next.delay, next.ttr, next.pause});
}

// The job waits for its group (tables/groups.h).
bool is_held(const Placement& place) {
  return place.state == JobState::delayed && place.until == kNever;
}

// The event that the counters of a job show. No value: the counters are unchanged.
std::optional<Event> counted_between(const JobCounters& before, const JobCounters& after) {
  if (after.kicks > before.kicks) return Event::kick;
  if (after.timeouts > before.timeouts) return Event::timeout;
  if (after.releases > before.releases) return Event::release;
  if (after.buries > before.buries) return Event::bury;
  if (after.reserves > before.reserves) return Event::disconnect;
  return std::nullopt;
}

// Passes each fact to a function.
class EachFact final : public FactSink {
 public:
  explicit EachFact(std::function<void(const Fact&)> visit) : visit_(std::move(visit)) {}
  void fact(const Fact& fact) override { visit_(fact); }

 private:
  std::function<void(const Fact&)> visit_;
};

}  // namespace

TestMode::TestMode(commands::Service& service, ClockMode mode, Time tick,
                   std::function<void()> end_drain)
    : service_(service), clock_(mode, service.now(), tick), end_drain_(std::move(end_drain)) {
  service.set_test_hooks(*this);
}

void TestMode::recovered() {
  EachFact learn([this](const Fact& fact) {
    const Added* added = added_in(fact);
    if (added != nullptr) learn_rest(added->id, {added->counters, is_held(added->place)});
    if (const auto* key = std::get_if<Remembered>(&fact)) cooldowns_.insert(key->id);
  });
  service_.engine().durable_state().visit(service_.now(), learn);
}

std::span<const Command> TestMode::verbs() const {
  return verb_table();
}

const Command* TestMode::command_for(std::string_view word, const Command* command) {
  if (command != nullptr) return observed(*command);
  const auto found = std::ranges::find(verb_table(), word, &Command::name);
  return found == verb_table().end() ? nullptr : &*found;
}

// --- Time

std::optional<Time> TestMode::tick_began(Time tick) {
  continue_awaiting(tick);
  if (clock_.mode() == ClockMode::automatic && every_client_waits()) {
    if (const auto next = next_deadline()) clock_.set(std::max(*next, service_.now()), tick);
  }
  return clock_.at(tick);
}

Deadlines TestMode::next_deadlines() const {
  const Time tick = service_.tick_time();
  Deadlines next = service_.engine().next_deadlines();
  if (clock_.mode() == ClockMode::automatic && next_deadline() && every_client_waits()) {
    next.delay = tick;
    return next;
  }
  for (Time* deadline : {&next.delay, &next.ttr, &next.pause}) {
    *deadline = clock_.tick_of(*deadline, tick);
  }
  for (const Awaiting& one : awaiting_) next.delay = std::min(next.delay, one.until);
  return next;
}

// True if at least one client waits, in a reserve or for the end of a job, and all others do, but
// for the control connection.
bool TestMode::every_client_waits() const {
  const engine::EngineInfo info = service_.engine().info();
  const bool has_control = control_ && service_.conversations().all()[*control_] != nullptr;
  const bool control_is_busy = has_control && !service_.engine().is_waiting(*control_);
  const std::uint64_t waiting = info.waiting + info.waiting_for_jobs;
  return waiting > 0 && waiting + (control_is_busy ? 1 : 0) == info.sessions;
}

std::optional<Time> TestMode::time_after(Duration duration) const {
  const Time now = service_.now();
  // The clock shows the time since its beginning as a Duration.
  const bool fits = duration <= Duration::max() - (now - clock_.begin());
  if (!fits || now > kLatest - duration) return std::nullopt;
  return now + duration;
}

std::optional<Time> TestMode::next_deadline() const {
  const Time next = first_of(service_.engine().next_deadlines());
  if (next == kNever) return std::nullopt;
  return next;
}

void TestMode::set_now(Time now) {
  clock_.set(now, service_.tick_time());
  service_.set_now(now);
}

// Every other client has done what it can, and what it did is durable.
bool TestMode::is_settled(SessionId session) const {
  const auto has_work = [&](const Conversation* one) {
    return one != nullptr && one->session() != session && one->can_resume() &&
           one->command().operation<commands::TestOperation>() == nullptr;
  };
  return !service_.conversations().has_notified() &&
         std::ranges::none_of(service_.conversations().all(), has_work) &&
         service_.log().durable() == service_.log().appended();
}

Answer TestMode::advance(SessionId session, Time until) {
  for (int passed = 0; passed < kDeadlinesPerSlice; ++passed) {
    if (!is_settled(session)) return protocol::Unfinished{};
    engine::Engine& engine = service_.engine();
    const Deadlines next = engine.next_deadlines();
    const Time first = first_of(next);
    if (!next.closing && first > until) {
      set_now(std::max(until, service_.now()));
      return protocol::Number{"ADVANCED", clock_.milliseconds(service_.now())};
    }
    if (!next.closing) set_now(std::max(first, service_.now()));
    engine.advance(service_.now(), service_);
  }
  return protocol::Unfinished{};
}

Answer TestMode::show_clock() {
  const auto next = next_deadline();
  return protocol::Numbers{"CLOCK", clock_.milliseconds(service_.now()),
                           next ? clock_.milliseconds(*next) : 0};
}

// --- State

void TestMode::reset() {
  replace_queue(clock_.begin(), nullptr);
}

bool TestMode::take_snapshot(std::string_view name, std::uint64_t& jobs) {
  if (!snapshots_.contains(name) && snapshots_.size() >= kMostSnapshots) return false;
  Snapshot snapshot(service_.engine(), service_.now());
  jobs = snapshot.jobs();
  snapshots_.erase(std::string(name));
  snapshots_.try_emplace(std::string(name), std::move(snapshot));
  return true;
}

std::optional<std::uint64_t> TestMode::restore(std::string_view name) {
  const auto found = snapshots_.find(name);
  if (found == snapshots_.end()) return std::nullopt;
  replace_queue(found->second.now(), &found->second);
  return found->second.jobs();
}

// A journal gets the facts that lead from the old queue to the new queue.
void TestMode::replace_queue(Time now, const Snapshot* snapshot) {
  FactLog& log = service_.log();
  if (log.stats().on_disk) {
    EachFact undo([&log](const Fact& fact) {
      if (const Added* added = added_in(fact)) log.fact(Removed{added->id});
      if (const auto* key = std::get_if<Remembered>(&fact)) log.fact(Removed{key->id});
      if (const auto* paused = std::get_if<Paused>(&fact)) {
        log.fact(Paused{.tube = paused->tube, .duration = {}, .until = {}});
      }
      if (const auto* policy = std::get_if<PolicySet>(&fact)) {
        log.fact(PolicySet{.tube = policy->tube, .key = policy->key, .value = kNoPolicyValue});
      }
    });
    service_.engine().durable_state().visit(service_.now(), undo);
    while (service_.engine().has_removals(service_.now())) {
      service_.engine().remove_pending(service_.now(), log, service_);
    }
    if (snapshot != nullptr) snapshot->visit(log);
  }
  events_.clear();
  faults_.clear();
  rests_.clear();
  cooldowns_.clear();
  awaiting_.clear();
  clock_.set(now, service_.tick_time());
  service_.replace_queue(now, [&](engine::Engine& engine) {
    engine::Replay replay(engine, now);
    if (snapshot != nullptr) snapshot->visit(replay);
    engine.end_replay();
  });
  recovered();
  // With the new jobs: a waiting client does not get an old job.
  if (service_.draining()) end_drain_();
}

std::string TestMode::dump() const {
  return test_mode::dump(service_, clock_.milliseconds(service_.now()));
}

Result<std::uint64_t> TestMode::load(std::string_view lines) {
  return test_mode::load(lines, service_);
}

void TestMode::learn_rest(JobId id, const Rest& rest) {
  if (rest.held || rest.counters != JobCounters()) {
    rests_[id] = rest;
  } else {
    rests_.erase(id);
  }
}

TestMode::Rest TestMode::rest_of(JobId id) const {
  const auto known = rests_.find(id);
  return known == rests_.end() ? Rest() : known->second;
}

// --- Events

void TestMode::add_event(Event event, std::string_view details) {
  events_.add(event, details);
  for (const Awaiting& one : awaiting_) service_.conversations().unpark(one.session);
  awaiting_.clear();
}

void TestMode::fact(const Fact& fact) {
  std::visit(
      Overloaded{[&](const Added& job) { added(job); }, [&](const Placed& job) { placed(job); },
                 [&](const Removed& removed) {
                   rests_.erase(removed.id);
                   if (cooldowns_.erase(removed.id) > 0) return;
                   if (take_retired(removed.id)) return;
                   // Outside of a command, the job was held when its tube was truncated.
                   if (running_ == nullptr) return;
                   add_event(Event::erase, fmt::format("{}", removed.id));
                 },
                 [&](const Paused& paused) {
                   add_event(Event::pause,
                             fmt::format("{} {}", paused.tube, paused.duration.count));
                 },
                 [&](const Flushed& flushed) { add_event(Event::flush, flushed.tube); },
                 [&](const Remembered& key) { cooldowns_.insert(key.id); }, [](const PolicySet&) {},
                 [](const Held&) {}, [](const Applied&) {},
                 [&](const Moved& moved) {
                   if (moved.id == moving_) return;  // record() adds the event
                   add_event(Event::move, fmt::format("{} {}", moved.id, moved.tube));
                 }},
      fact);
}

void TestMode::added(const Added& added) {
  const bool held = is_held(added.place);
  learn_rest(added.id, {added.counters, held});
  add_event(Event::put, fmt::format("{} {}", added.id, added.tube));
  if (held) add_event(Event::hold, fmt::format("{}", added.id));
}

void TestMode::placed(const Placed& placed) {
  const Rest before = rest_of(placed.id);
  const Rest after{placed.counters, is_held(placed.place)};
  learn_rest(placed.id, after);
  // record() adds the event of a move.
  if (take_retired(placed.id) || placed.id == moving_) return;
  const auto event = event_between(before, after);
  if (event) add_event(*event, fmt::format("{}", placed.id));
}

// True: the fact is part of a retirement.
bool TestMode::take_retired(JobId id) {
  const bool is_retired = id == retired_;
  if (is_retired) retired_ = 0;
  return is_retired;
}

// No value: no event is about that, as about the end of a delay.
std::optional<Event> TestMode::event_between(const Rest& before, const Rest& after) const {
  if (const auto event = counted_between(before.counters, after.counters)) return event;
  if (after.held != before.held) return after.held ? Event::hold : Event::unhold;
  // A put has another priority for the job that has its key.
  const bool reprioritizes =
      running_ != nullptr && (running_->name == word_of(Event::reprioritize) || is_put(*running_));
  if (reprioritizes) return Event::reprioritize;
  return std::nullopt;
}

// A release, a timeout or a closed session comes first, if one of them has made the job dead.
void TestMode::retired(const engine::Retirement& retirement) {
  const JobId id = retirement.job;
  if (const auto event = counted_between(rest_of(id).counters, retirement.counters)) {
    add_event(*event, fmt::format("{}", id));
  }
  const bool expired = retirement.reason == DeathReason::expired;
  add_event(expired ? Event::expire : Event::dead, fmt::format("{} {}", id, retirement.to));
  retired_ = id;
}

void TestMode::notice(const engine::Notice& notice) {
  const std::string name = connection_name(notice.session);
  switch (notice.kind) {
    case engine::Notice::Kind::reserved:
      return add_event(Event::reserve, fmt::format("{} {}", notice.job, name));
    case engine::Notice::Kind::timed_out:
      if (notice.job != 0) return;  // of a wait for a job, which is no event
      return add_event(Event::timed_out, name);
    case engine::Notice::Kind::deadline_soon:
      return add_event(Event::deadline_soon, name);
    case engine::Notice::Kind::deleted:
    case engine::Notice::Kind::buried:
    case engine::Notice::Kind::not_found:
      return;
  }
}

// The events of which no fact and no notice is emitted.
void TestMode::record(const Command& row, SessionId session, const ArgumentStorage& storage,
                      const Answer& answer, bool goes_on) {
  const std::string name = connection_name(session);
  const auto* status = std::get_if<Status>(&answer);
  if (row.name.starts_with(word_of(Event::reserve))) {
    if (const auto* job = std::get_if<protocol::JobAnswer>(&answer)) {
      add_event(Event::reserve, fmt::format("{} {}", job->id, name));
    } else if (const auto* batch = std::get_if<protocol::JobBatch>(&answer)) {
      // The first job of a command that has waited was announced by a notice.
      for (std::size_t i = goes_on ? 1 : 0; i < batch->jobs.size(); ++i) {
        add_event(Event::reserve, fmt::format("{} {}", batch->jobs[i].id, name));
      }
    } else if (status != nullptr && status->word == word::kTimedOut) {
      add_event(Event::timed_out, name);
    } else if (status != nullptr && status->word == word::kDeadlineSoon) {
      add_event(Event::deadline_soon, name);
    }
  } else if (status != nullptr && status->word == word::kTouched) {
    const auto& job = commands::arguments_in<commands::TouchArguments>(storage);
    add_event(Event::touch, fmt::format("{} {}", job.id, name));
  } else if (status != nullptr && status->word == word::kMoved) {
    // Its tube may be the same, and then no fact is emitted about the move.
    const auto& job = commands::arguments_in<commands::MoveJobArguments>(storage);
    add_event(Event::move, fmt::format("{} {}", job.id, job.tube.text));
  }
}

// --- Commands

Answer TestMode::run(const Command& row, Context& context, const ArgumentStorage& storage,
                     Operation& operation) {
  if (std::holds_alternative<TestOperation>(operation)) {
    // It hung until a reset, or until its client gave up.
    if (!context.may_wait) return protocol::Close{};
    return Status{word::kInternalError};
  }
  if (!commands::in_progress(operation) && context.session != control_) {
    if (const auto fault = faults_.take(row.name)) {
      if (context.body) service_.engine().memory().give_back(row.claimed(storage));
      return meet(*fault, context, operation);
    }
  }
  running_ = &row;
  if (row.name == kMoveJob) {
    moving_ = commands::arguments_in<commands::MoveJobArguments>(storage).id;
  }
  const bool goes_on = commands::in_progress(operation);
  const Answer answer = row.run(context, storage, operation);
  running_ = nullptr;
  moving_ = 0;
  record(row, context.session, storage, answer, goes_on);
  return answer;
}

// A fault that is an error word is decided before the body arrives, as in a server that refuses it.
BodyPlan TestMode::begin_body(const Command& row, Context& context,
                              const ArgumentStorage& storage) {
  BodyPlan plan = row.begin_body(context, storage);
  if (context.session == control_) return plan;
  const auto fault = faults_.peek(row.name);
  if (!fault || fault->kind != Faults::Kind::reply) return plan;
  faults_.take(row.name);
  if (plan.kind == BodyPlan::Kind::accept)
    service_.engine().memory().give_back(row.claimed(storage));
  context.body = Bytes();
  return {.kind = BodyPlan::Kind::discard, .bytes = plan.bytes, .refusal = {fault->word}};
}

Answer TestMode::meet(const Faults::Fault& fault, const Context& context, Operation& operation) {
  if (fault.kind == Faults::Kind::reply) return Status{fault.word};
  if (fault.kind == Faults::Kind::close) return protocol::Close{};
  operation = TestOperation{};
  service_.conversations().at(context.session).command().park();
  return protocol::Unfinished{};
}

Answer TestMode::await(Context& context, Event event, std::uint64_t count, Time until) {
  if (events_.count(event) >= count) return protocol::Number{"AWAITED", events_.count(event)};
  if (!context.may_wait || until <= service_.tick_time()) return Status{word::kTimedOut};
  awaiting_.push_back({context.session, until});
  service_.conversations().at(context.session).command().park();
  return protocol::Unfinished{};
}

void TestMode::continue_awaiting(Time tick) {
  std::erase_if(awaiting_, [&](const Awaiting& one) {
    if (one.until > tick) return false;
    service_.conversations().unpark(one.session);
    return true;
  });
}

}  // namespace tubed::test_mode
