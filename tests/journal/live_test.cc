// --check and --dump of a journal that a server is writing.
#include "journal/live.h"

#include <functional>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "journal/dump.h"
#include "journal/segment.h"
#include "tests/journal/disturbed.h"
#include "tests/journal/full_journal.h"
#include "tests/journal/opened.h"

namespace tubed::journal {

namespace {

constexpr std::uint64_t kSegment = 16 << 10;
constexpr WallClock kWallTime{};

using Lines = std::vector<std::string>;

Result<void> dump_into(Storage& storage, Lines& lines) {
  return dump(storage, [&](std::string_view line) { lines.emplace_back(line); });
}

// Returns the lines of a dump that call something unreadable.
Lines faults(const Lines& lines) {
  Lines found;
  for (const std::string& line : lines) {
    if (line.find(" does not read ") != std::string::npos ||
        line.find(" cannot be read") != std::string::npos) {
      found.push_back(line);
    }
  }
  return found;
}

void churn(JournaledQueue& queue, int jobs) {
  for (int i = 0; i < jobs; ++i) queue.remove(queue.put(200));
  queue.settle();
}

std::unique_ptr<JournaledQueue> busy(TestDisk& disk) {
  auto queue = opened(disk, {.segment_bytes = kSegment});
  for (int i = 0; i < 200; ++i) queue->put(100, 10);
  queue->settle();
  return queue;
}

// Reads a journal whose server puts and removes jobs before each of the first reads.
void for_each_churn(const std::function<void(Storage& churned)>& read) {
  for (int jobs = 1; jobs < 60; jobs += 3) {
    CAPTURE(jobs);
    TestDisk disk;
    const auto queue = busy(disk);
    int looks = 0;
    Disturbed disturbed(disk, [&] {
      if (++looks < 40) churn(*queue, jobs);
    });
    read(disturbed);
  }
}

}  // namespace

TEST_CASE("a journal whose segments are removed while it is checked is whole") {
  for_each_churn([](Storage& churned) {
    const auto found = examine_live(churned, kWallTime);
    REQUIRE(found.ok());
    CHECK_FALSE(found->cut);
    CHECK(found->liveness.jobs() >= 200);
  });
}

TEST_CASE("a dump of a journal whose segments are being removed reports no damage") {
  for_each_churn([](Storage& churned) {
    Lines lines;
    CHECK(dump_into(churned, lines));
    CHECK(lines.size() > 200);
    CHECK(faults(lines) == Lines());
  });
}

TEST_CASE("a file that is reused for another segment during a check is not damage") {
  FullJournal checked(kSegment);
  const auto found = examine_live(checked.disturbed(), kWallTime);
  REQUIRE(found.ok());
  CHECK(found->liveness.jobs() == FullJournal::kKeptJobs);
  FullJournal dumped(kSegment);
  Lines lines;
  CHECK(dump_into(dumped.disturbed(), lines));
  CHECK(faults(lines) == Lines());
}

TEST_CASE("a write in progress is not a torn end") {
  TestDisk disk;
  const auto queue = busy(disk);
  // Before each read a batch is completed, and the first byte of the next is written.
  std::string name;
  std::uint64_t end = 0;
  const auto begin_to_write = [&] {
    if (end > 0) disk.flip(name, end, 1);
    queue->put(10);
    queue->settle();
    IgnoreRecords ignore;
    const auto found = examine(disk, kWallTime, ignore, nullptr);
    REQUIRE(found.ok());
    const FoundSegment& current = found->segments[found->current];
    name = segment_name(current.sequence);
    end = current.used_bytes;
    disk.flip(name, end, 1);
  };
  Disturbed disturbed(disk, begin_to_write);
  const auto busy_end = examine_live(disturbed, kWallTime);
  REQUIRE(busy_end.ok());
  CHECK_FALSE(busy_end->cut);
  // At rest the same bytes are a torn end.
  const auto torn = examine_live(disk, kWallTime);
  REQUIRE(torn.ok());
  CHECK(torn->cut);
}

TEST_CASE("damage of a journal at rest is reported as by examine()") {
  TestDisk disk(TestDisk::Contents{});
  {
    TestDisk written;
    const auto queue = busy(written);
    for (int i = 0; i < 100; ++i) churn(*queue, 1);
    disk = TestDisk(written.files());
  }
  const auto names = disk.names();
  REQUIRE(names.size() > 2);
  disk.flip(names[1], kSegmentHeaderBytes + 20);
  IgnoreRecords ignore;
  const auto expected = examine(disk, kWallTime, ignore, nullptr);
  REQUIRE_FALSE(expected.ok());
  int looks = 0;
  Disturbed counted(disk, [&] { ++looks; });
  const auto found = examine_live(counted, kWallTime);
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().message == expected.error().message);
  CHECK(found.error().kind == Error::Kind::damaged);
  // Two reads and two listings.
  CHECK(looks <= static_cast<int>(2 * names.size() + 2));
}

TEST_CASE("a journal that changes too fast is not called damaged") {
  TestDisk disk;
  const auto queue = busy(disk);
  int serial = 0;
  const std::string extra = disk.contents(segment_name(1));
  // Adds a gap in each listing.
  Disturbed renamed(disk, [&] {
    disk.lose(disk.names().back());
    disk.place(segment_name(static_cast<std::uint64_t>(1000 + ++serial)), extra);
  });
  const auto found = examine_live(renamed, kWallTime);
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().message ==
        "the segments are created and removed faster than they can be opened");
  CHECK(found.error().kind == Error::Kind::other);
  CHECK(serial < 100);
}

TEST_CASE("a journal that is different at each read is not called damaged") {
  TestDisk disk;
  {
    TestDisk written;
    const auto queue = opened(written, {.segment_bytes = 1 << 20});
    for (int i = 0; i < 200; ++i) {
      queue->put(1);
      queue->settle();
    }
    disk = TestDisk(written.files());
  }
  std::uint64_t at = kSegmentHeaderBytes + 20;
  disk.flip(segment_name(1), at, 1);
  int reads = 0;
  Disturbed disturbed(disk, [&] {
    ++reads;
    disk.flip(segment_name(1), at, 1);
    at += kBatchHeaderBytes + added_bytes(7, 1);
    disk.flip(segment_name(1), at, 1);
  });
  const auto found = examine_live(disturbed, kWallTime);
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().kind == Error::Kind::other);
  CHECK(found.error().message.starts_with(
      "the journal changes faster than it can be read (20 attempts; the last found: "
      "journal.0000000001 is damaged at offset "));
  CHECK(reads < 200);
}

}  // namespace tubed::journal
