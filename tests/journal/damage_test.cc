// A journal that was damaged on disk is recovered up to some fact, or refused with the file's name.
// Recovery never returns a state that did not exist, and never silently loses data that, according
// to the log itself, was on disk.
#include <algorithm>
#include <functional>
#include <map>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "journal/backup.h"
#include "tests/journal/journal_life.h"
#include "tests/journal/sample.h"
#include "tests/share.h"

namespace tubed::journal {

namespace {

struct FoundBatch {
  std::uint64_t segment;
  std::uint64_t end;  // the offset after its last byte
  Lsn lsn;            // the position of the last fact of this batch
};

// Checks that a backup of the disk is refused and leaves nothing, or that recovery accepts it
// completely.
void check_backup(TestDisk& disk, const std::string& damage) {
  TestDisk copy;
  if (!back_up(disk, copy, &copy)) {
    CHECK_MESSAGE(copy.names().empty(), damage);
    return;
  }
  IgnoreRecords ignore;
  const auto found = examine(copy, WallClock{}, ignore, nullptr);
  CHECK_MESSAGE(found.ok(), damage << ": " << (found ? "" : found.error().message));
  if (found) CHECK_MESSAGE(!found->cut, damage);
}

// A journal of several segments, with the history of its facts.
class Recorded final : public RecordSink {
 public:
  enum class End : std::uint8_t { in_order, as_it_is };

  Recorded(std::uint64_t seed, End end, Duration sync = {}) : life_(nature(seed, sync)) {
    REQUIRE(life_.boot());
    while (!has_enough()) life_.tick();
    if (end == End::in_order) life_.stop();
    life_.disk().run_all();
    REQUIRE_FALSE(life_.problem());
    files_ = life_.disk().durable_files();
    TestDisk disk(files_);
    auto found = examine(disk, life_.clock(), *this, nullptr);
    REQUIRE(found.ok());
    found_ = std::move(*found);
    REQUIRE_FALSE(found_.cut);
  }

  const TestDisk::Contents& files() const { return files_; }
  const Examined& found() const { return found_; }
  const BatchHeader& last_batch() const { return last_batch_; }
  std::string current_name() const {
    return segment_name(found_.segments[found_.current].sequence);
  }

  // Returns the number of facts in complete batches before this place.
  Lsn facts_before(std::uint64_t segment, std::uint64_t offset) const {
    Lsn lsn = first_lsn_;
    for (const FoundBatch& batch : batches_) {
      const bool before =
          batch.segment < segment || (batch.segment == segment && batch.end <= offset);
      if (before) lsn = batch.lsn;
    }
    return lsn;
  }

  // Recovers this disk. Returns the position after the last recovered fact, or nothing if recovery
  // refuses it.
  std::optional<Lsn> recover(TestDisk& disk, const std::string& damage) {
    check_backup(disk, damage);
    const auto revival = revive(disk, life_.clock(), life_.now());
    if (!revival) {
      const bool names_file = revival.error().message.find("journal.0") != std::string::npos;
      CHECK_MESSAGE(names_file, damage << ": " << revival.error().message);
      return std::nullopt;
    }
    const Lsn lsn = revival.value().found.next_lsn;
    if (lsn > life_.journal().appended()) FAIL(damage << ": facts that were never appended");
    const engine::Lines& expected = state_after(lsn);
    if (durable_state(*revival.value().engine, life_.now()) != expected) {
      FAIL(damage << ": not the state after " << lsn << " facts");
    }
    return lsn;
  }

  void record(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
              const Record& record) override {
    if (const auto* batch = std::get_if<BatchHeader>(&record)) {
      if (batches_.empty()) first_lsn_ = next_lsn_ = batch->lsn;
      last_batch_ = *batch;
      batches_.push_back({segment, 0, next_lsn_});
    } else {
      ++next_lsn_;
    }
    batches_.back().end = offset + bytes;
    batches_.back().lsn = next_lsn_;
  }

 private:
  static JournalLife::Nature nature(std::uint64_t seed, Duration sync) {
    JournalLife::Nature nature;
    nature.seed = seed;
    nature.sync = sync;
    nature.habits = {.jobs = 8, .body_bytes = 400};
    return nature;
  }

  bool has_enough() const {
    const LogStats counts = life_.journal().stats();
    return counts.oldest_segment > 1 && counts.current_segment > counts.oldest_segment + 1;
  }

  const engine::Lines& state_after(Lsn lsn) {
    engine::Lines& state = states_[lsn];
    if (state.empty()) {
      const auto engine = life_.history().state_at(lsn, life_.clock(), life_.now());
      state = durable_state(*engine, life_.now());
    }
    return state;
  }

  JournalLife life_;
  TestDisk::Contents files_;
  Examined found_;
  std::vector<FoundBatch> batches_;
  Lsn first_lsn_ = 0;
  Lsn next_lsn_ = 0;
  BatchHeader last_batch_;
  std::map<Lsn, engine::Lines> states_;
};

using End = Recorded::End;

// How often recovery refused the damage, and how often it succeeded.
struct Tally {
  std::uint64_t refused = 0;
  std::uint64_t recovered = 0;

  void add(const std::optional<Lsn>& lsn) { ++(lsn ? recovered : refused); }
};

// Damages each file in every way of `act` and checks the recovery: no data that was on disk when
// the last batch was written may be missing. Damage of `reach` bytes that extends from the data
// before the last batch into its header leaves no evidence.
Tally damage_every_file(
    Recorded& recorded,
    const std::function<void(TestDisk&, const std::string&, std::uint64_t)>& act,
    std::uint64_t stride, std::uint64_t reach) {
  Tally tally;
  for (const auto& [name, contents] : recorded.files()) {
    for (std::uint64_t at = 0; at < contents.size(); at += stride) {
      TestDisk disk(recorded.files());
      act(disk, name, at);
      const std::string damage = name + " at " + std::to_string(at);
      const auto lsn = recorded.recover(disk, damage);
      tally.add(lsn);
      const std::uint64_t last = recorded.last_batch().offset;
      const bool hides = name == recorded.current_name() && at < last && at + reach > last;
      if (lsn && !hides) CHECK_MESSAGE(*lsn >= recorded.last_batch().durable, damage);
    }
  }
  return tally;
}

}  // namespace

TEST_CASE("a changed byte is noticed, wherever it is" * doctest::test_suite("slow")) {
  for (const End end : {End::in_order, End::as_it_is}) {
    Recorded recorded(end == End::in_order ? 1 : 2, end);
    const Tally tally = damage_every_file(
        recorded,
        [](TestDisk& disk, const std::string& name, std::uint64_t at) {
          constexpr std::array<std::uint8_t, 4> kMasks = {0xff, 0x01, 0x80, 0x10};
          disk.flip(name, at, kMasks[at * 7 % kMasks.size()]);
        },
        kOneIn, 1);
    // headers, and data that was on disk before the last batch
    CHECK(tally.refused > 3000 / kOneIn);
    CHECK(tally.recovered > 0);
  }
}

TEST_CASE("damage after an orderly stop loses nothing, in each sync mode") {
  for (const Duration sync :
       {Duration(), Duration(std::chrono::milliseconds(50)), Duration::max()}) {
    CAPTURE(sync.count());
    Recorded recorded(9, End::in_order, sync);
    const BatchHeader& mark = recorded.last_batch();
    CHECK(mark.clean);
    CHECK(mark.lsn == recorded.found().next_lsn);
    CHECK(mark.durable == mark.lsn);
    Tally tally;
    for (const auto& [name, contents] : recorded.files()) {
      for (std::uint64_t at = 0; at < contents.size(); at += 5 * kOneIn) {
        TestDisk disk(recorded.files());
        disk.flip(name, at, static_cast<std::uint8_t>(1U << at % 8));
        const std::string damage = name + " at " + std::to_string(at);
        const auto lsn = recorded.recover(disk, damage);
        tally.add(lsn);
        if (lsn) CHECK_MESSAGE(*lsn == recorded.found().next_lsn, damage);
      }
    }
    CHECK(tally.refused > 200 / kOneIn);
    CHECK(tally.recovered > 0);
  }
}

TEST_CASE("a sector of zeros is noticed") {
  Recorded recorded(3, End::as_it_is);
  const Tally tally = damage_every_file(
      recorded,
      [](TestDisk& disk, const std::string& name, std::uint64_t at) {
        std::string image = disk.contents(name);
        const std::size_t bytes = std::min<std::size_t>(512, image.size() - at);
        image.replace(at, bytes, bytes, '\0');
        disk.place(name, image);
      },
      512, 512);
  CHECK(tally.refused > 5);
}

TEST_CASE("a file cut short ends the log there, or is refused if the log continued after it" *
          doctest::test_suite("slow")) {
  for (const End end : {End::in_order, End::as_it_is}) {
    Recorded recorded(end == End::in_order ? 4 : 5, end);
    Tally tally;
    for (const auto& [name, contents] : recorded.files()) {
      const std::uint64_t segment = sequence_of(name).value();
      for (std::uint64_t bytes = 0; bytes < contents.size(); bytes += kOneIn) {
        TestDisk disk(recorded.files());
        disk.cut(name, bytes);
        const std::string damage = name + " cut to " + std::to_string(bytes);
        const auto lsn = recorded.recover(disk, damage);
        tally.add(lsn);
        const Lsn left = name < recorded.current_name() ? recorded.last_batch().durable
                                                        : recorded.facts_before(segment, bytes);
        if (lsn) CHECK_MESSAGE(*lsn >= left, damage);
      }
    }
    CHECK(tally.refused > 3000 / kOneIn);
    CHECK(tally.recovered > 0);
  }
}

TEST_CASE("a missing file between others is refused") {
  Recorded recorded(6, End::as_it_is);
  const auto& segments = recorded.found().segments;
  REQUIRE(segments.size() >= 3);
  for (std::size_t i = 1; i + 1 < segments.size(); ++i) {
    TestDisk disk(recorded.files());
    disk.lose(segment_name(segments[i].sequence));
    CHECK_FALSE(recorded.recover(disk, "a file lost"));
  }
  TestDisk disk(recorded.files());
  disk.lose(segment_name(segments.back().sequence));
  recorded.recover(disk, "the last file lost");
}

TEST_CASE("a segment in the place of another is refused") {
  Recorded recorded(7, End::as_it_is);
  Recorded other(8, End::as_it_is);
  for (const auto& [name, contents] : recorded.files()) {
    for (const TestDisk::Contents* from : {&recorded.files(), &other.files()}) {
      for (const auto& [from_name, from_contents] : *from) {
        if (from == &recorded.files() && from_name == name) continue;
        TestDisk disk(recorded.files());
        disk.place(name, from_contents);
        CHECK_FALSE(recorded.recover(disk, from_name + " in the place of " + name));
      }
    }
  }
}

// --- Hand-written journals

namespace {

using sample::Collected;
using sample::Image;

Result<Examined> examined(TestDisk& disk, Collected& collected) {
  return examine(disk, sample::kClock, collected, nullptr);
}

std::string error_of(const TestDisk::Contents& files) {
  TestDisk disk(files);
  Collected collected;
  const auto found = examined(disk, collected);
  const std::string message = found ? "" : found.error().message;
  check_backup(disk, message);
  return message;
}

Fact job(JobId id) {
  return sample::added(id, kDefaultTube, "body");
}

// Three jobs. Of those in the first segment, one was removed and two were copied, each in its own
// batch.
struct Compacted {
  Compacted() {
    first.batch().fact(job(1)).fact(job(2)).fact(job(3));
    second.use_ids_below(4).with_jobs(first.jobs());
    second.batch().fact(Removed{.id = 1}).batch().fact(job(2)).batch().fact(job(3));
    second.batch().fact(job(4));
  }
  Image first{1, 0};
  Image second{2, 3};
};

}  // namespace

TEST_CASE("a journal whose older segments were compacted away is whole") {
  const Compacted made;
  TestDisk disk(TestDisk::Contents{{segment_name(2), made.second.bytes()}});
  Collected collected;
  const auto found = examined(disk, collected);
  REQUIRE(found);
  CHECK(found.value().liveness.jobs() == 3);
  CHECK(found.value().next_lsn == 7);
  CHECK_FALSE(found.value().cut);
}

TEST_CASE("a lost oldest segment is not mistaken for a segment removed by compaction") {
  Image second(2, 3);
  second.with_jobs({1, 2, 3}).batch().fact(job(4)).zeros(100);
  CHECK(
      error_of({{segment_name(2), second.bytes()}}) ==
      "journal.0000000002 is the oldest segment, and the log from there to offset 224 of "
      "journal.0000000002 gives 1 jobs, and says that there are 4: older segments are missing, or "
      "the end of the log is");
  for (std::uint64_t seed = 10; seed < 20; ++seed) {
    Recorded recorded(seed, Recorded::End::as_it_is);
    TestDisk disk(recorded.files());
    const auto& segments = recorded.found().segments;
    for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
      disk.lose(segment_name(segments[i].sequence));
      const auto lsn = recorded.recover(disk, "the oldest segments lost");
      if (lsn) CHECK(*lsn == recorded.found().next_lsn);  // the segments were no longer needed
    }
  }
}

TEST_CASE("lost copies at the end of the log are noticed") {
  const Compacted made;
  const std::string whole = made.second.bytes();
  // Its records: batch, removal, batch, copy, batch, copy, batch, new job.
  const auto& starts = made.second.starts();
  for (std::size_t record = 0; record < starts.size(); ++record) {
    CAPTURE(record);
    std::string torn = whole;
    torn[starts[record] + 9] = '\xff';
    std::string lost = whole;
    std::fill(lost.begin() + static_cast<long>(starts[record]), lost.end(), '\0');
    for (std::string* image : {&torn, &lost}) {
      // No later record proves that it was on disk.
      image->resize(record < 6 ? starts[6] : image->size());
      const std::string error = error_of({{segment_name(2), *image}});
      CHECK(error.empty() == (record >= 6));
      const bool names_it = error.empty() || error.find("journal.0000000002") == 0;
      CHECK_MESSAGE(names_it, error);
    }
    // With the older segment, only the end of the log is lost.
    CHECK(error_of({{segment_name(1), made.first.bytes()}, {segment_name(2), lost}}).empty());
  }
  std::string torn = whole.substr(0, starts[6]);
  torn[starts[5] + 9] = '\xff';
  CHECK(error_of({{segment_name(2), torn}}) ==
        "journal.0000000002 is damaged at offset " + std::to_string(starts[5]) +
            ": the record does not match its checksum; the log before it gives 1 jobs, and says "
            "that there are 2");
}

TEST_CASE("a batch counts whole or not at all, and is cut off when it is torn") {
  Image image(1, 0);
  image.batch().fact(job(1)).batch().fact(job(2)).fact(Removed{.id = 1}).fact(job(3));
  const std::size_t second = image.starts()[2];
  // Up to the fields of the last record, which ends with zeros; zeros may follow.
  for (std::size_t bytes = second + 1; bytes < image.starts().back() + 60; ++bytes) {
    for (const std::size_t zeros : {0U, 8U, 200U}) {
      CAPTURE(bytes);
      TestDisk disk(TestDisk::Contents{
          {segment_name(1), image.bytes().substr(0, bytes) + std::string(zeros, '\0')}});
      Collected collected;
      auto found = examined(disk, collected);
      REQUIRE(found);
      REQUIRE(found.value().next_lsn == 1);
      REQUIRE(found.value().liveness.jobs() == 1);
      REQUIRE(collected.facts().size() == 1);
      REQUIRE(found.value().cut);
      REQUIRE(found.value().cut->offset == second);
      REQUIRE(found.value().cut->lost_batches == 0);
      REQUIRE(repair(disk, found.value()));
      REQUIRE(disk.contents(segment_name(1)).size() == second);
    }
  }
}

TEST_CASE("a batch with fewer facts than it says ends the log, whatever follows") {
  Image image(1, 0);
  image.batch().fact(job(1)).batch().fact(job(2)).fact(job(3));
  const std::size_t third = image.starts().back();
  Image next(1, 2);
  next.raw(std::string(third - kSegmentHeaderBytes, 'x')).batch().fact(job(3));
  const std::string torn =
      image.bytes().substr(0, third) + next.bytes().substr(third);  // its durable is 2
  CHECK(error_of({{segment_name(1), torn}}) == "journal.0000000001 is damaged at offset " +
                                                   std::to_string(third) +
                                                   ": 1 facts of the group before it are missing");
  const Image second = Image(2, 2).batch();
  CHECK(error_of({{segment_name(1), image.bytes().substr(0, third)},
                  {segment_name(2), second.bytes()}}) ==
        "journal.0000000001 is damaged at offset " + std::to_string(third) +
            ": 1 facts of the group before it are missing");
}

TEST_CASE("a fact after the last of its batch ends the log") {
  Image image(1, 0);
  image.batch().fact(job(1));
  std::string extra = image.bytes();
  append_record(extra, seed_of(1), job(2), sample::kClock);
  TestDisk disk(TestDisk::Contents{{segment_name(1), extra}});
  Collected collected;
  const auto found = examined(disk, collected);
  REQUIRE(found);
  CHECK(found.value().next_lsn == 1);
  REQUIRE(found.value().cut);
  CHECK(found.value().cut->offset == image.bytes().size());
  CHECK(found.value().cut->reason == "a fact stands in no group");
}

TEST_CASE("a log without a whole batch is empty if no segment can have preceded it") {
  for (const std::uint64_t sequence : {1U, 2U}) {
    Image image(sequence, 0);
    image.batch().fact(job(1)).fact(job(2));
    for (std::size_t bytes = kSegmentHeaderBytes; bytes < image.bytes().size(); ++bytes) {
      CAPTURE(bytes);
      const std::string error =
          error_of({{segment_name(sequence), image.bytes().substr(0, bytes)}});
      if (sequence == 1) {
        CHECK(error == "");
      } else {
        CHECK(error.starts_with("journal.0000000002 is damaged at offset "));
      }
    }
  }
}

TEST_CASE("a segment with a number that no journal reaches is refused") {
  const std::uint64_t sequence = 1'000'000'000'000;
  CHECK(error_of({{segment_name(sequence), Image(sequence, 0).batch().bytes()}}) ==
        "journal.1000000000000 has a number that no journal comes to");
}

TEST_CASE("an id that no journal reaches is damage, even in a valid record") {
  const JobId kLast = UINT64_MAX;
  const auto refusal = [](const sample::Image& image) {
    TestDisk disk;
    disk.place(segment_name(1), image.bytes());
    sample::Collected collected;
    const auto found = examine(disk, sample::kClock, collected, nullptr);
    REQUIRE_FALSE(found.ok());
    CHECK(found.error().kind == Error::Kind::damaged);
    return found.error().message;
  };
  const auto expected = [&](std::size_t offset) {
    return fmt::format("{} is damaged at offset {}: no journal comes to id {}", segment_name(1),
                       offset, kLast);
  };
  sample::Image added(1, 0);
  added.batch().fact(sample::added(1, "t", "x"));
  added.batch().fact(sample::added(kLast, "t", "x"));
  CHECK(refusal(added) == expected(added.starts().back()));
  sample::Image removed(1, 0);
  removed.batch().fact(sample::added(1, "t", "x")).fact(Removed{.id = kLast});
  CHECK(refusal(removed) == expected(removed.starts().back()));
  sample::Image used(1, 0);
  used.batch().fact(sample::added(1, "t", "x"));
  used.use_ids_below(kLast).batch();
  CHECK(refusal(used) == expected(used.starts().back()));
}

}  // namespace tubed::journal
