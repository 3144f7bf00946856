// Records that recovery cuts from the end of a log are kept, and salvage reads them.
#include "journal/cut_files.h"

#include <set>

#include <doctest/doctest.h>

#include "journal/salvage.h"
#include "journal/segment.h"
#include "tests/journal/opened.h"
#include "tests/journal/sample.h"

namespace tubed::journal {

namespace {

using sample::Image;
using sample::kClock;

// The image as a server writes it that syncs later or never: no batch says that an earlier fact is
// durable.
std::string never_synced(const Image& image, std::uint64_t sequence) {
  std::string bytes = image.bytes();
  SegmentReader reader(image.bytes(), sequence, WallClock{});
  while (auto batch = reader.find_batch()) {
    batch->durable = 0;
    write_batch_header({bytes.data() + batch->offset, kBatchHeaderBytes}, seed_of(sequence),
                       *batch);
  }
  return bytes;
}

Fact cut_job(JobId id, std::string_view body) {
  return sample::added(id, kDefaultTube, body);
}

Examined recovered(TestDisk& disk) {
  IgnoreRecords ignore;
  auto found = examine(disk, kClock, ignore, nullptr);
  REQUIRE(found);
  REQUIRE(repair(disk, *found));
  return std::move(*found);
}

// Returns the bodies of all jobs that salvage finds on the disk.
std::multiset<std::string> salvaged_bodies(TestDisk& disk) {
  const auto before = disk.files();
  TestDisk copy;
  LogCopy into(copy, {.directory = 99, .segment_bytes = 10'000, .clock = kClock, .now = 1});
  REQUIRE(salvage(disk, into, kClock, [](std::string_view) {}));
  CHECK(disk.files() == before);
  const auto queue = opened(copy, {.clock = kClock});
  std::multiset<std::string> bodies;
  for (JobId id = 1; id < into.next_job_id(); ++id) {
    if (const auto job = queue->engine().queries().peek(id)) bodies.emplace(job->body.view());
  }
  CHECK(bodies.size() == queue->engine().info().jobs.total());
  return bodies;
}

using JobBodies = std::multiset<std::string>;

// Two segments of a log that was never synced. The second batch is damaged. Job 5 was removed.
TestDisk with_torn_tail() {
  Image first(1, 0);
  first.batch().fact(cut_job(1, "one")).batch().fact(cut_job(2, "two"));
  const std::size_t third = first.bytes().size();
  first.batch().fact(cut_job(3, "three"));
  Image second(2, first.next_lsn());
  second.use_ids_below(4).with_jobs(first.jobs());
  second.batch().fact(cut_job(4, "four")).fact(cut_job(5, "five"));
  second.batch().fact(Removed{.id = 5});
  TestDisk disk(TestDisk::Contents{{segment_name(1), never_synced(first.zeros(200), 1)},
                                   {segment_name(2), never_synced(second.zeros(200), 2)}});
  disk.flip(segment_name(1), third - 8);
  return disk;
}

}  // namespace

TEST_CASE("whole batches that recovery cuts are kept, and salvage copies their jobs") {
  TestDisk disk = with_torn_tail();
  const Examined found = recovered(disk);
  REQUIRE(found.cut);
  CHECK(found.liveness.jobs() == 1);
  CHECK(found.cut->lost_batches == 3);
  CHECK(found.cut->kept == "cut.0000000001.*");
  const std::string cut_at = std::to_string(found.cut->offset);
  CHECK(disk.names() == std::vector<std::string>{"cut.0000000001.0000000001." + cut_at,
                                                 "cut.0000000001.0000000002.0", segment_name(1)});
  CHECK(salvaged_bodies(disk) == JobBodies{"one", "three", "four"});
  // The log is now whole, and is not cut again.
  CHECK_FALSE(recovered(disk).cut);
}

TEST_CASE("a salvaged job of a cut gets a new id if its id was used again") {
  TestDisk disk = with_torn_tail();
  {
    const auto queue = opened(disk, {.clock = kClock});
    CHECK(queue->put_body("new two") == 2);
    CHECK(queue->put_body("new three") == 3);
    queue->remove(1);
    queue->settle();
  }
  CHECK(salvaged_bodies(disk) == JobBodies{"new two", "new three", "three", "four"});
}

TEST_CASE("a job of a cut that the journal also has is not copied") {
  TestDisk disk = with_torn_tail();
  recovered(disk);
  const auto cuts = list_cut_files(disk);
  REQUIRE(cuts);
  REQUIRE(cuts->size() == 2);
  // The same files again, as if a later start had cut them again.
  for (const CutFile& cut : *cuts) {
    CutFile again = cut;
    again.number = 2;
    disk.place(again.name(), disk.contents(cut.name()));
  }
  CHECK(salvaged_bodies(disk).size() >= 3);
  CHECK(salvaged_bodies(disk).count("one") == 1);
}

TEST_CASE("damage after the mark of tubed 2.0.0, which was not synced, is kept") {
  Image image(1, 0);
  image.batch().fact(cut_job(1, "one")).batch().fact(cut_job(2, "two"));
  const std::size_t third = image.bytes().size();
  image.batch().fact(cut_job(3, "three")).batch(true);
  const TestDisk::Contents whole{{segment_name(1), never_synced(image.zeros(100), 1)}};
  TestDisk stopped(whole);
  CHECK(recovered(stopped).clean);
  CHECK(stopped.names() == std::vector<std::string>{segment_name(1)});
  // Possible after a power cut right after the stop.
  TestDisk disk(whole);
  disk.flip(segment_name(1), third - 8);
  const Examined found = recovered(disk);
  REQUIRE(found.cut);
  CHECK_FALSE(found.clean);
  CHECK(salvaged_bodies(disk) == JobBodies{"one", "three"});
  // The mark of this version says that the facts are durable: the same damage is refused.
  const Image named = Image(1, 0).batch().fact(cut_job(1, "one")).batch(true);
  TestDisk damaged(TestDisk::Contents{{segment_name(1), named.bytes()}});
  damaged.flip(segment_name(1), kSegmentHeaderBytes + kBatchHeaderBytes + 20);
  IgnoreRecords ignore;
  CHECK_FALSE(examine(damaged, kClock, ignore, nullptr).ok());
}

TEST_CASE("the newest cuts are kept, and older cuts removed") {
  TestDisk disk;
  { const auto queue = opened(disk, {.sync = Duration::max(), .clock = kClock}); }
  disk = TestDisk(disk.files());
  for (std::uint64_t round = 1; round <= 10; ++round) {
    CAPTURE(round);
    {
      const auto queue = opened(disk, {.sync = Duration::max(), .clock = kClock});
      for (int i = 0; i < 3; ++i) {
        queue->put_body("round " + std::to_string(round));
        queue->settle();
      }
    }
    disk = TestDisk(disk.files());
    IgnoreRecords ignore;
    const auto whole = examine(disk, kClock, ignore, nullptr);
    REQUIRE(whole);
    const FoundSegment& current = whole->segments[whole->current];
    disk.flip(segment_name(current.sequence), current.used_bytes - 200);
    const Examined found = recovered(disk);
    REQUIRE(found.cut);
    const auto cuts = list_cut_files(disk);
    REQUIRE(cuts);
    CHECK(cuts->size() == std::min(round, kKeptCuts));
    CHECK(cuts->back().number == round);
  }
}

TEST_CASE("a crash while a cut is being kept loses nothing of it") {
  for (std::uint64_t step = 0;; ++step) {
    CAPTURE(step);
    REQUIRE(step < 100);
    TestDisk disk = with_torn_tail();
    disk.crash_at(disk.steps() + step);
    IgnoreRecords ignore;
    auto found = examine(disk, kClock, ignore, nullptr);
    const bool repaired = found && repair(disk, *found);
    for (const bool loses : {false, true}) {
      if (repaired) break;
      TestDisk next = TestDisk(disk.files());
      if (loses) next = TestDisk(disk.durable_files());
      recovered(next);
      CHECK(salvaged_bodies(next) == JobBodies{"one", "three", "four"});
      const auto cuts = list_cut_files(next);
      REQUIRE(cuts);
      CHECK(cuts->size() <= 3);
    }
    if (repaired) break;
  }
}

TEST_CASE(
    "a cut for which the disk has no room is kept once the log is cut, and the server starts in "
    "any case") {
  for (const bool eaten : {false, true}) {
    CAPTURE(eaten);
    TestDisk disk = with_torn_tail();
    disk.set_capacity(disk.total_bytes());
    if (eaten) disk.eat_space();
    IgnoreRecords ignore;
    auto found = examine(disk, kClock, ignore, nullptr);
    REQUIRE(found);
    REQUIRE(repair(disk, *found));
    // The later segment has already been moved.
    CHECK(found->cut->kept == "cut.0000000001.*");
    const auto cuts = list_cut_files(disk);
    REQUIRE(cuts);
    CHECK(cuts->size() == (eaten ? 1 : 2));
    CHECK(salvaged_bodies(disk) ==
          (eaten ? JobBodies{"one", "four"} : JobBodies{"one", "three", "four"}));
  }
}

TEST_CASE("each cut file has exactly one name") {
  const CutFile file{.number = 3, .segment = 7, .offset = 1234};
  CHECK(file.name() == "cut.0000000003.0000000007.1234");
  const auto found = cut_file_of(file.name());
  REQUIRE(found);
  CHECK(found->number == 3);
  CHECK(found->segment == 7);
  CHECK(found->offset == 1234);
  for (const char* name :
       {"cut.3.7.1234", "cut.0000000003.0000000007", "cut.0000000003.0000000007.01234",
        "cut.0000000003.0000000007.1234.", "cut.", "cut", "acut.0000000003.0000000007.1234"}) {
    CAPTURE(name);
    CHECK_FALSE(cut_file_of(name));
  }
}

}  // namespace tubed::journal
