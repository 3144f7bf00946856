// Units of facts after a crash (docs/ARCHITECTURE.md, "Units of facts"): every cause that emits
// several facts about one job, at the end of a segment, with a crash before each step of the disk
// and a log cut at each byte of its batches. The change must exist as a whole or not at all.
//
// The test does not know units. It knows that each call of the engine about one job is one change:
// a recovered log must end between two calls. A command about many jobs is called with
// work_per_turn = 1, so each call is about one job.
#include <array>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "journal/record.h"
#include "tests/journal/journal_life.h"
#include "tests/journal/opened.h"
#include "tests/share.h"

namespace tubed::journal {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSegmentBytes = 4096;

// A queue with its journal on a disk, the facts that it has emitted, and the ends of its changes.
class Stage final : public engine::Output {
 public:
  Stage(Duration sync, bool reservations)
      : settings_{.sync = sync, .segment_bytes = kSegmentBytes, .reservations = reservations} {
    queue_ = opened(disk_, settings_);
    Limits limits;
    limits.work_per_turn = 1;
    engine().set_limits(limits);
    if (reservations) engine().recorded_reservations().record_to(this);
    history_.begin(engine(), queue_->journal().appended(), settings_.clock, now());
    note_change();
  }

  TestDisk& disk() { return disk_; }
  engine::Engine& engine() { return queue_->engine(); }
  SessionId session() const { return queue_->session(); }
  Time now() const { return queue_->now(); }

  // --- Steps of causes

  JobId put(std::string_view tube, const JobTags& tags, std::size_t body_bytes = 0) {
    const std::uint64_t memory = body_bytes + engine::tags_memory(tags);
    REQUIRE(engine().memory().claim(static_cast<std::uint32_t>(memory)));
    const engine::PutRequest request{.priority = 9,
                                     .delay = {},
                                     .ttr = {60},
                                     .body = Bytes::copy_of(std::string(body_bytes, 'b'))};
    const auto result = engine().put_with_tags(now(), tube, request, tags, *this);
    note_change();
    return result.value().id;
  }
  JobId put_with_key(std::string_view tube, std::uint32_t cooldown = 100) {
    return put(tube, {.unique_key = "key", .cooldown = {cooldown}});
  }
  void remove(JobId job) {
    REQUIRE(engine().remove(session(), now(), job, *this));
    note_change();
  }
  // Gives the key a cooldown in the tube that has ended, without a fact about its end.
  void let_cooldown_end(std::string_view tube) {
    remove(put_with_key(tube, 1));
    queue_->let_time_pass(2s);
  }
  void set(PolicyKey key, std::string_view value) {
    REQUIRE(engine().set_policy(now(), "a", key, value, *this));
    note_change();
  }
  void reserve(JobId job) {
    REQUIRE(engine().reserve_job(session(), now(), job));
    note_change();
  }
  void release(JobId job) {
    REQUIRE(engine().release(session(), now(), job, 0, {}, *this));
    note_change();
  }
  void bury(JobId job) {
    REQUIRE(engine().bury(session(), now(), job, 0, *this));
    note_change();
  }
  void move(JobId job, std::string_view tube, bool placed) {
    std::optional<engine::NewPlace> place;
    if (placed) place = {.priority = 5, .delay = {{30}}};
    const auto result = engine().tube_moves().move(session(), now(), job, tube, place, *this);
    REQUIRE(result == engine::MoveResult::moved);
    note_change();
  }
  // Does all work that is due after this time.
  void advance(Duration by) {
    queue_->let_time_pass(by);
    do {
      engine().advance(now(), *this);
      note_change();
    } while (engine().next_deadlines().due(now()));
  }
  // A call of the engine has ended.
  void note_change() { changes_.insert(queue_->journal().appended()); }

  // --- The log

  // Writes everything. Each fact that the journal adds itself is a separate change.
  void settle() {
    Lsn lsn = queue_->journal().appended();
    queue_->settle();
    while (lsn < queue_->journal().appended()) changes_.insert(++lsn);
  }
  // Adds jobs until the log ends `gap` bytes before the end of a segment.
  void fill(std::uint64_t gap) {
    const std::uint64_t end = kSegmentBytes - gap;
    if (used() + kBatchHeaderBytes + added_bytes(1, 8) > end) put_filler(2'000);
    const std::uint64_t record = end - used() - kBatchHeaderBytes;
    put_filler(record - added_bytes(1, 7));
    REQUIRE(used() == end);
  }
  // Returns the bytes of facts since the last call.
  std::uint64_t take_bytes() { return std::exchange(bytes_, 0); }

  // Returns nothing if the log on that disk consists of whole changes.
  std::optional<std::string> halves_on(TestDisk& disk) {
    auto revival = revive(disk, settings_.clock, now());
    if (!revival) return revival.error().message;
    const Lsn lsn = revival->found.next_lsn;
    if (!changes_.contains(lsn)) return fmt::format("half of a change: the log ends at {}", lsn);
    auto& expected = states_[lsn];
    if (expected.empty()) {
      expected = durable_state(*history_.state_at(lsn, settings_.clock, now()), now());
    }
    if (durable_state(*revival->engine, now()) != expected) return "another state";
    return std::nullopt;
  }

  void fact(const Fact& fact) override {
    queue_->fact(fact);
    history_.add(fact, queue_->journal().appended(), now());
    bytes_ += record_bytes(fact);
  }
  void begin_unit() override { queue_->begin_unit(); }
  void end_unit() override { queue_->end_unit(); }
  void notice(const engine::Notice& /*notice*/) override {}

 private:
  std::uint64_t used() {
    TestDisk copy(disk_.files());
    auto revival = revive(copy, settings_.clock, now());
    REQUIRE(revival.ok());
    return revival->found.segments[revival->found.current].used_bytes;
  }
  void put_filler(std::uint64_t body_bytes) {
    put("f", {}, body_bytes);
    settle();
  }

  TestDisk disk_;
  JournaledQueue::Settings settings_;
  std::unique_ptr<JournaledQueue> queue_;
  History history_;
  std::set<Lsn> changes_;
  std::map<Lsn, engine::Lines> states_;
  std::uint64_t bytes_ = 0;
};

const std::string kFarTube(150, 'd');  // long, to make the unit long

void make_dead(Stage& stage, std::string_view to) {
  stage.set(PolicyKey::max_attempts, "1");
  stage.set(PolicyKey::dead, to);
}

struct Cause {
  std::string name;
  std::function<void(Stage&)> prepare;
  std::function<void(Stage&)> run;
  bool reservations = false;
};

// Job 1 is always put first.
const std::vector<Cause>& causes() {
  static const std::vector<Cause> kCauses = {
      {"a job with a cooldown is deleted", [](Stage& stage) { stage.put_with_key("a"); },
       [](Stage& stage) { stage.remove(1); }},
      {"a job with a cooldown is deleted by force",
       [](Stage& stage) { stage.reserve(stage.put_with_key("a")); },
       [](Stage& stage) {
         REQUIRE(stage.engine().remove_held(stage.now(), 1, stage));
         stage.note_change();
       }},
      {"a dead job is released",
       [](Stage& stage) {
         make_dead(stage, kFarTube);
         stage.reserve(stage.put_with_key("a"));
       },
       [](Stage& stage) { stage.release(1); }},
      {"a dead job is released into a tube where its key had a cooldown",
       [](Stage& stage) {
         make_dead(stage, "b");
         stage.let_cooldown_end("b");
         stage.reserve(stage.put_with_key("a"));
       },
       [](Stage& stage) { stage.release(2); }},
      {"a dead job is deleted with a cooldown",
       [](Stage& stage) {
         make_dead(stage, "delete");
         stage.reserve(stage.put_with_key("a"));
       },
       [](Stage& stage) { stage.release(1); }},
      {"a dead job times out",
       [](Stage& stage) {
         make_dead(stage, "b");
         stage.reserve(stage.put("a", {}));
       },
       [](Stage& stage) { stage.advance(60s); }},
      {"the session with dead jobs is closed",
       [](Stage& stage) {
         make_dead(stage, "b");
         for (int i = 0; i < 3; ++i) stage.reserve(stage.put("a", {}));
       },
       [](Stage& stage) {
         stage.engine().close(stage.session(), stage.now(), stage);
         stage.note_change();
         stage.advance(0s);
       }},
      {"jobs expire",
       [](Stage& stage) {
         stage.set(PolicyKey::ttl, "5");
         stage.set(PolicyKey::expired, "b");
         stage.put("a", {});
         stage.put_with_key("a");
       },
       [](Stage& stage) { stage.advance(5s); }},
      {"a job is moved to another place", [](Stage& stage) { stage.put("a", {}); },
       [](Stage& stage) { stage.move(1, "b", true); }},
      {"a reserved job is moved", [](Stage& stage) { stage.reserve(stage.put_with_key("a")); },
       [](Stage& stage) { stage.move(1, kFarTube, false); }},
      {"a job is moved to a tube where its key had a cooldown",
       [](Stage& stage) {
         stage.let_cooldown_end("b");
         stage.put_with_key("a");
       },
       [](Stage& stage) { stage.move(2, "b", false); }},
      {"buried jobs are moved",
       [](Stage& stage) {
         for (int i = 0; i < 3; ++i) {
           const JobId job = stage.put("a", {});
           stage.reserve(job);
           stage.bury(job);
         }
       },
       [](Stage& stage) {
         engine::Slices move = stage.engine().queries().slices("a", JobState::buried, 3);
         while (move.left > 0) {
           REQUIRE(stage.engine().tube_moves().move_slice(stage.now(), move, "b", stage));
           stage.note_change();
         }
       }},
      {"a job is put after a cooldown", [](Stage& stage) { stage.let_cooldown_end("a"); },
       [](Stage& stage) { stage.put_with_key("a"); }},
      {"a job that is larger than a segment is put after a cooldown",
       [](Stage& stage) { stage.let_cooldown_end("a"); },
       [](Stage& stage) { stage.put("a", {.unique_key = "key"}, kSegmentBytes); }},
      {"a reserved job gets another priority",
       [](Stage& stage) { stage.reserve(stage.put_with_key("a")); },
       [](Stage& stage) {
         const JobTags tags{.unique_key = "key", .cooldown = {100}};
         REQUIRE(stage.engine().memory().claim(engine::tags_memory(tags)));
         const engine::PutRequest request{.priority = 1, .delay = {}, .ttr = {60}, .body = {}};
         REQUIRE(stage.engine().put_with_tags(stage.now(), "a", request, tags, stage));
         stage.note_change();
       },
       true},
  };
  return kCauses;
}

// Prepares the log before the cause: it ends `gap` bytes before the end of a segment.
std::unique_ptr<Stage> before(const Cause& cause, Duration sync, std::uint64_t gap) {
  auto stage = std::make_unique<Stage>(sync, cause.reservations);
  cause.prepare(*stage);
  stage->settle();
  stage->fill(gap);
  return stage;
}

// Returns the gaps at which the segment may end between two facts of the cause. For long facts, a
// sanitizer build tries every fifth.
std::vector<std::uint64_t> gaps_of(const Cause& cause) {
  const auto stage = before(cause, 0s, 0);
  stage->take_bytes();
  cause.run(*stage);
  const std::uint64_t bytes = std::min(stage->take_bytes(), std::uint64_t{1'000});
  REQUIRE(bytes > 0);
  std::uint64_t apart = 8;
  if (bytes >= 200) apart *= kOneIn;
  if (bytes >= 1'000) apart *= 12;
  std::vector<std::uint64_t> gaps;
  for (std::uint64_t gap = 0; gap <= kBatchHeaderBytes + bytes; gap += apart) gaps.push_back(gap);
  return gaps;
}

// Switches the machine off before this step of the disk, counted from the cause. Returns whether
// the disk reached the step.
bool crash(const Cause& cause, Duration sync, std::uint64_t gap, std::uint64_t step, Fate fate) {
  const auto stage = before(cause, sync, gap);
  stage->disk().crash_at(stage->disk().steps() + step);
  cause.run(*stage);
  stage->settle();
  if (!stage->disk().off()) return false;
  Random random(gap * 1'000 + step);
  TestDisk left = stage->disk().after_crash(random, fate);
  const auto halves = stage->halves_on(left);
  CAPTURE(gap);
  CAPTURE(step);
  CHECK_MESSAGE(!halves, halves.value_or(""));
  return true;
}

// Calls visit(TestDisk&) once per changed byte, with a disk that has the new files before that byte
// and the old files from there. Returns the number of bytes.
template <class Visit>
std::uint64_t for_each_cut(TestDisk::Contents files, const TestDisk::Contents& after, Visit visit) {
  std::uint64_t cuts = 0;
  for (const auto& [name, changed] : after) {
    if (!name.starts_with("journal.")) continue;
    // A new file has its header before it has its name.
    const auto place = files.try_emplace(name, changed.substr(0, kSegmentHeaderBytes)).first;
    std::string& contents = place->second;
    contents.resize(std::max(contents.size(), changed.size()), '\0');
    for (std::size_t at = 0; at < changed.size(); ++at) {
      if (contents[at] == changed[at]) continue;
      TestDisk left(files);
      visit(left);
      contents[at] = changed[at];
      ++cuts;
    }
  }
  TestDisk whole(files);
  visit(whole);
  return cuts;
}

void cut_everywhere(const Cause& cause, std::uint64_t gap) {
  const auto stage = before(cause, 0s, gap);
  const TestDisk::Contents files = stage->disk().files();
  cause.run(*stage);
  stage->settle();
  std::optional<std::string> halves;
  const std::uint64_t cuts = for_each_cut(files, stage->disk().files(), [&](TestDisk& left) {
    if (!halves) halves = stage->halves_on(left);
  });
  CAPTURE(gap);
  CHECK_MESSAGE(!halves, halves.value_or(""));
  CHECK(cuts > kBatchHeaderBytes / 2);
}

}  // namespace

TEST_CASE("a crash at any step leaves a change whole or absent") {
  for (const Duration sync : {Duration(0s), Duration(200ms), Duration::max()}) {
    CAPTURE(sync.count());
    for (const Cause& cause : causes()) {
      CAPTURE(cause.name);
      for (const std::uint64_t gap : gaps_of(cause)) {
        for (const Fate fate : {Fate::kill, Fate::power_loss}) {
          std::uint64_t step = 0;
          while (crash(cause, sync, gap, step, fate)) ++step;
          CHECK(step > 0);
        }
      }
    }
  }
}

TEST_CASE("a log that is cut at any byte has a change whole or not at all") {
  for (const Cause& cause : causes()) {
    CAPTURE(cause.name);
    for (const std::uint64_t gap : gaps_of(cause)) cut_everywhere(cause, gap);
  }
}

TEST_CASE("the largest unit without a body has 552 bytes") {
  const std::string longest(200, 'x');
  const auto size = [](std::initializer_list<Fact> facts) {
    std::size_t bytes = 0;
    for (const Fact& fact : facts) bytes += record_bytes(fact);
    return bytes;
  };
  const JobMarks marks{.reserves = 1,
                       .timeouts = 1,
                       .releases = 1,
                       .dead_from = longest,
                       .reason = DeathReason::expired,
                       .after_done = true};
  const Fact placed = PlacedWithMarks{Placed{.id = 1, .place = {}, .counters = {}}, marks};
  const Fact moved = Moved{.id = 1, .tube = longest};
  const Fact remembered = Remembered{.id = 1, .tube = longest, .key = longest, .until = {}};
  CHECK(size({Removed{.id = 2}, placed, moved}) == 552);
  CHECK(size({Removed{.id = 1}, remembered}) < 552);
  CHECK(size({placed, Held{.id = 1, .until = {}}}) < 552);
}

// The only change that a crash may leave in part: the next start completes it.
TEST_CASE(
    "a crash at any fact of the end of a group leaves the jobs that waited to the next start") {
  Stage stage(0s, false);
  const JobId member = stage.put("a", {.group = "all"});
  for (int i = 0; i < 3; ++i) stage.put("b", {.after = "all"});
  stage.settle();
  const TestDisk::Contents files = stage.disk().files();
  stage.remove(member);
  stage.advance(0s);
  stage.settle();
  std::set<std::uint64_t> ready;
  for_each_cut(files, stage.disk().files(), [&](TestDisk& left) {
    auto queue = opened(left, {.segment_bytes = kSegmentBytes});
    queue->pass(0s);
    const bool has_member = queue->engine().queries().peek(member).has_value();
    const std::uint64_t found = queue->engine().info().jobs.ready;
    CHECK(found == (has_member ? 1 : 3));
    ready.insert(found);
  });
  CHECK(ready == std::set<std::uint64_t>{1, 3});
}

}  // namespace tubed::journal
