#include "tests/journal/journal_life.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/replay.h"

namespace tubed::journal {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kFirstWall = 1'700'000'000 * kSecond;

void shift(Placement& place, Duration by) {
  if (place.state == JobState::delayed && place.until != kNever) place.until += by;
}

// Converts the times of a fact to another clock.
Fact shifted(Fact fact, Duration by) {
  if (Added* added = added_in(fact)) {
    added->created += by;
    shift(added->place, by);
  } else if (auto* placed = std::get_if<Placed>(&fact)) {
    shift(placed->place, by);
  } else if (auto* marked = std::get_if<PlacedWithMarks>(&fact)) {
    shift(marked->place, by);
  } else if (auto* paused = std::get_if<Paused>(&fact)) {
    paused->until += by;
  } else if (auto* key = std::get_if<Remembered>(&fact)) {
    key->until += by;
  } else if (auto* held = std::get_if<Held>(&fact)) {
    held->until += by;
  }
  return fact;
}

std::string text(std::uint64_t number) {
  return std::to_string(number);
}

// True if the two consecutive facts have one cause.
bool are_halves(const Fact& before, const Fact& after) {
  const auto* removed = std::get_if<Removed>(&before);
  const auto* marked = std::get_if<PlacedWithMarks>(&before);
  const auto* placed = marked != nullptr ? marked : std::get_if<Placed>(&before);
  const auto* moved = std::get_if<Moved>(&after);
  if (placed != nullptr && moved != nullptr) return placed->id == moved->id;
  if (removed == nullptr) return false;
  if (moved != nullptr) return true;  // the key had an expired cooldown there
  if (std::holds_alternative<AddedWithTags>(after)) return true;  // the same
  const auto* remembered = std::get_if<Remembered>(&after);
  return remembered != nullptr && remembered->id == removed->id;
}

// For queues that serve no client, so their durable state includes reservations.
NullLog nowhere;

// Returns the first line that differs.
std::string difference(const engine::Lines& found, const engine::Lines& expected) {
  const auto [in_found, in_expected] =
      std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  return "found " + (in_found == found.end() ? "nothing" : in_found->substr(0, 200)) +
         ", expected " + (in_expected == expected.end() ? "nothing" : in_expected->substr(0, 200));
}

}  // namespace

Result<Revival> revive(Storage& storage, const WallClock& clock, Time now) {
  Revival revival;
  revival.engine = std::make_unique<engine::Engine>(Limits{});
  revival.engine->recorded_reservations().record_to(&nowhere);
  engine::Replay queue(*revival.engine, now);
  Restorer restorer(queue);
  auto found = examine(storage, clock, restorer, nullptr);
  if (!found) return found.error();
  restorer.finish(*found);
  revival.found = std::move(*found);
  return revival;
}

engine::Lines durable_state(const engine::Engine& engine, Time now) {
  engine::Recording list;
  engine.durable_state().visit(now, list);
  engine::Lines lines = list.take_facts();
  std::sort(lines.begin(), lines.end());  // pauses are in the order of the list of tubes
  return lines;
}

// --- History

void History::begin(const engine::Engine& engine, Lsn lsn, const WallClock& clock, Time now) {
  first_ = lsn;
  clock_ = clock;
  before_ = {};
  engine.durable_state().visit(now, before_);
  facts_.clear();
  units_.clear();
}

void History::add(const Fact& fact, Lsn lsn, Time now) {
  facts_.push_back({engine::RecordedFact(fact, now), lsn, cause_});
}

std::optional<std::string> History::torn_after(Lsn lsn) const {
  for (const auto& [begin, end] : units_) {
    if (begin < lsn && lsn < end) {
      return "a part of the unit from " + text(begin) + " to " + text(end) + " is there";
    }
  }
  for (std::size_t i = 0; i + 1 < facts_.size(); ++i) {
    if (facts_[i].lsn != lsn || facts_[i + 1].cause != facts_[i].cause) continue;
    const Fact before = facts_[i].fact.fact();
    const Fact after = facts_[i + 1].fact.fact();
    if (are_halves(before, after)) {
      return "half of a change is there: " + engine::describe(before).substr(0, 200) + " without " +
             engine::describe(after).substr(0, 200);
    }
  }
  return std::nullopt;
}

std::optional<Fact> History::last_before(Lsn lsn) const {
  std::optional<Fact> last;
  for (const Entry& entry : facts_) {
    if (entry.lsn <= lsn) last = entry.fact.fact();
  }
  return last;
}

std::unique_ptr<engine::Engine> History::state_at(Lsn lsn, const WallClock& clock, Time now) const {
  TUBED_ASSERT(lsn >= first_);
  const Duration by = clock_.offset - clock.offset;
  auto engine = std::make_unique<engine::Engine>(Limits{});
  engine->recorded_reservations().record_to(&nowhere);
  for (const engine::RecordedFact& fact : before_.log())
    engine->replay(now, shifted(fact.fact(), by));
  for (const Entry& entry : facts_) {
    if (entry.lsn <= lsn) engine->replay(now, shifted(entry.fact.fact(), by));
  }
  return engine;
}

// --- ClientBooks

void ClientBooks::note(const std::vector<ScriptedLoad::Reply>& replies, Lsn lsn) {
  for (const ScriptedLoad::Reply& reply : replies) {
    if (reply.removed) {
      jobs_[reply.id].removed_at = lsn;
      continue;
    }
    if (jobs_.contains(reply.id)) problem_ = "job " + text(reply.id) + " was put twice";
    jobs_[reply.id] = {.body = reply.body, .put_at = lsn};
  }
}

std::optional<std::string> ClientBooks::check(const engine::Engine& engine,
                                              Lsn acknowledged) const {
  for (const auto& [id, job] : jobs_) {
    const auto found = engine.queries().peek(id);
    const bool put = job.put_at <= acknowledged;
    const bool removed = job.removed_at && *job.removed_at <= acknowledged;
    if (found && removed) return "job " + text(id) + " was deleted, and is back";
    if (found && found->body.view() != job.body) return "job " + text(id) + " has another body";
    if (!found && put && !job.removed_at) return "job " + text(id) + " is lost";
  }
  return std::nullopt;
}

void ClientBooks::settle(const engine::Engine& engine, Lsn acknowledged) {
  for (auto entry = jobs_.begin(); entry != jobs_.end();) {
    auto& [id, job] = *entry;
    const bool found = engine.queries().peek(id).has_value();
    if (!found && job.put_at > acknowledged) {
      entry = jobs_.erase(entry);  // the put was not acknowledged: its id may be used again
      continue;
    }
    job.put_at = 0;
    job.removed_at = found ? std::nullopt : std::optional<Lsn>(0);
    ++entry;
  }
}

// --- JournalLife

JournalLife::JournalLife(const Nature& nature)
    : nature_(nature),
      random_(nature.seed),
      options_{.sync = nature.sync,
               .segment_bytes = nature.segment_bytes,
               .max_bytes = nature.max_bytes,
               .directory = random_(),
               .clock = {}},
      wall_(kFirstWall),
      load_(nature.seed, nature.habits) {
  history_.begin(engine::Engine(Limits{}), 0, options_.clock, Time());
}

Time JournalLife::now() const {
  return Time(Duration(wall_) - options_.clock.offset);
}

void JournalLife::expect(bool agreed, const std::string& what) {
  if (agreed || problem_) return;
  problem_ = "seed " + text(nature_.seed) + ": " + what;
  remember("problem");
}

void JournalLife::remember(const std::string& event) {
  constexpr std::size_t kEvents = 60;
  for (std::string& line : disk_.take_log()) events_.push_back(std::move(line));
  events_.push_back("-- " + event);
  while (events_.size() > kEvents) events_.pop_front();
}

std::string JournalLife::story() const {
  std::string story = problem_.value_or("no problem");
  for (const std::string& event : events_) story += "\n  " + event;
  return story;
}

bool JournalLife::boot() {
  remember("boot");
  // The machine has booted again, so its monotonic clock starts again.
  options_.clock.offset = Duration(wall_ - static_cast<std::int64_t>(below(100)) * kSecond);
  if (nature_.shuffled) disk_.shuffle(random_());
  auto revival = revive(disk_, options_.clock, now());
  if (!revival) {
    expect(false, "recovery refuses: " + revival.error().message);
    return false;
  }
  check_revival(*revival);
  if (problem_) return false;
  const Lsn lsn = revival->found.next_lsn;
  remember("recovered " + text(lsn) + " facts" +
           (revival->found.cut ? ", cut: " + revival->found.cut->reason : ""));
  const auto repaired = repair(disk_, revival->found);
  if (disk_.off()) return false;
  expect(repaired.ok(), "repair fails: " + (repaired.ok() ? "" : repaired.error().message));
  if (!problem_ && below(8) == 0) check_repaired(lsn);
  if (problem_) return false;

  engine_ = std::move(revival->engine);
  // A queue that has left a cluster releases the jobs that were held.
  options_.reservations = nature_.entries && below(5) > 0;
  entry_.clear();
  applied_ = revival->found.applied.value_or(Applied{});
  books_.settle(*engine_, acknowledged_);
  history_.begin(*engine_, lsn, options_.clock, now());
  engine_->recorded_reservations().record_to(options_.reservations ? this : nullptr);
  if (!options_.reservations || below(2) == 0) {
    engine_->recorded_reservations().hold_over(
        now() + Duration(options_.reservations ? below(5) * kSecond : 0));
  }
  acknowledged_ = durable_ = lsn;
  failed_ = full_ = stopped_in_order_ = false;
  auto journal = Journal::open(disk_, *this, options_, std::move(revival->found));
  expect(journal.ok(), "the journal does not open: " + (journal ? "" : journal.error().message));
  if (problem_) return false;
  journal_ = std::move(*journal);
  expect(journal_->appended() == lsn, "the log does not go on where it ended");
  load_.meet(*engine_, *this, now());
  return true;
}

void JournalLife::check_revival(const Revival& revival) {
  const Lsn lsn = revival.found.next_lsn;
  expect(lsn >= acknowledged_, "facts up to " + text(acknowledged_) + " were acknowledged, and " +
                                   text(lsn) + " are there");
  expect(lsn >= history_.first(),
         "facts up to " + text(history_.first()) + " were recovered once, and are gone");
  if (stopped_in_order_) {
    expect(revival.found.clean && !revival.found.cut && revival.found.leftovers.empty(),
           "an orderly stop has left traces");
  }
  if (problem_) return;
  revival.engine->check_invariants();
  const engine::Lines found = durable_state(*revival.engine, now());
  const engine::Lines expected =
      durable_state(*history_.state_at(lsn, options_.clock, now()), now());
  expect(found == expected, "after fact " + text(lsn) + ": " + difference(found, expected));
  const auto wrong = books_.check(*revival.engine, acknowledged_);
  expect(!wrong, wrong.value_or(""));
  const auto torn = history_.torn_after(lsn);
  expect(!torn, torn.value_or(""));
  if (options_.reservations) check_entries(revival.found);
}

// Checks that no entry is there in part.
void JournalLife::check_entries(const Examined& found) {
  const auto last = history_.last_before(found.next_lsn);
  if (!last) return;
  const auto* applied = std::get_if<Applied>(&*last);
  expect(applied != nullptr, "a part of an entry is there: the log ends with fact " +
                                 engine::describe(*last).substr(0, 200));
  expect(applied == nullptr || found.applied == *applied, "the position is another");
}

void JournalLife::check_repaired(Lsn lsn) {
  const auto again = revive(disk_, options_.clock, now());
  expect(again.ok(), "refused after a repair: " + (again.ok() ? "" : again.error().message));
  if (!again.ok()) return;
  const Examined& found = again.value().found;
  expect(found.next_lsn == lsn, "a repair has changed the log");
  expect(!found.cut && found.leftovers.empty(), "a repair has left something to repair");
}

void JournalLife::fact(const Fact& fact) {
  if (!options_.reservations) return append(fact);
  entry_.emplace_back(fact);
}

// An entry spans more than one unit.
void JournalLife::begin_unit() {
  if (options_.reservations) return;
  unit_begin_ = journal_->appended();
  journal_->begin_unit();
}

void JournalLife::end_unit() {
  if (options_.reservations) return;
  journal_->end_unit();
  history_.add_unit(unit_begin_, journal_->appended());
}

// Some commands emit no facts.
void JournalLife::end_entry() {
  if (entry_.empty()) return;
  std::uint64_t bytes = kAppliedBytes;
  for (const OwnedFact& fact : entry_) bytes += record_bytes(fact.fact());
  journal_->make_room(bytes);
  for (const OwnedFact& fact : entry_) append(fact.fact());
  entry_.clear();
  ++applied_.index;
  applied_.chain = random_();
  append(applied_);
}

void JournalLife::append(const Fact& fact) {
  journal_->fact(fact);
  history_.add(fact, journal_->appended(), now());
}

void JournalLife::report_failure(const std::string& reason) {
  expect(!failed_, "the journal has failed twice");
  expect(nature_.faulty, "the journal has failed: " + reason);
  failed_ = true;
  remember("journal failed: " + reason);
}

void JournalLife::watch_durable() {
  const Lsn durable = journal_->durable();
  expect(durable >= durable_ && durable <= journal_->appended(),
         "durable goes from " + text(durable_) + " to " + text(durable));
  durable_ = durable;
}

void JournalLife::end_tick() {
  moved_ = false;
  for (int i = 0; i < 3 && journal_->flush(); ++i) {
  }
  watch_durable();
}

void JournalLife::do_disk_work(std::uint64_t operations) {
  for (std::uint64_t i = 0; i < operations; ++i) {
    const bool was_failed = failed_;
    const Lsn before = durable_;
    if (!disk_.run_one()) return;
    watch_durable();
    expect(!was_failed || durable_ == before, "something became durable after a failure");
    if (moved_) end_tick();
  }
}

void JournalLife::tick() {
  constexpr std::int64_t kMillisecond = 1'000'000;
  wall_ += static_cast<std::int64_t>(below(12) == 0 ? 3000 : below(300)) * kMillisecond;
  history_.begin_cause();
  if (!failed_) load_.advance(now());
  end_entry();
  const auto may_put = [&](std::string_view /*tube*/, std::uint32_t body_bytes) {
    return journal_->has_room_for(body_bytes);
  };
  for (std::uint64_t commands = below(8); commands > 0; --commands) {
    if (failed_ || journal_->congested()) break;
    history_.begin_cause();
    load_.step(now(), may_put);
    end_entry();
    books_.note(load_.take_replies(), journal_->appended());
  }
  end_tick();
  do_disk_work(below(5));
  expect(!books_.problem(), books_.problem().value_or(""));
}

void JournalLife::stop() {
  bool stopped = false;
  journal_->close([&] { stopped = true; });
  for (int i = 0; i < 1000 && !stopped && !failed_ && !disk_.off(); ++i) {
    end_tick();
    disk_.run_one();
    wall_ += kSecond / 10;
  }
  if (disk_.off() || failed_) return;
  expect(stopped || full_, "it does not stop");
  if (!stopped) return;
  expect(journal_->durable() == journal_->appended(), "not all is durable after a stop");
  stopped_in_order_ = true;
}

void JournalLife::crash(Fate fate) {
  const bool lax = options_.sync != Duration();
  if (journal_ && stopped_in_order_) {
    acknowledged_ = journal_->appended();
  } else if (fate == Fate::power_loss && lax) {
    acknowledged_ = history_.first();
  } else if (journal_) {
    acknowledged_ = journal_->durable();
  }
  remember(std::string(fate == Fate::kill ? "killed" : "power lost") +
           (journal_
                ? ": durable " + text(journal_->durable()) + " of " + text(journal_->appended())
                : std::string(" while it recovered")));
  TestDisk next = disk_.after_crash(random_, fate);
  journal_.reset();
  engine_.reset();
  disk_ = std::move(next);
}

}  // namespace tubed::journal
