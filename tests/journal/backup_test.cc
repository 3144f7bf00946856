// Copies of a journal that a server is writing.
#include "journal/backup.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "journal/segment.h"
#include "tests/journal/disturbed.h"
#include "tests/journal/full_journal.h"
#include "tests/journal/opened.h"

using namespace tubed;
using namespace tubed::journal;

namespace {

constexpr std::uint64_t kSegment = 16 << 10;

TestDisk several_segments() {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegment});
  for (int i = 0; i < 300; ++i) {
    queue->put(200);
    if (i % 3 == 0) queue->settle();
  }
  queue->settle();
  return TestDisk(disk.files());
}

// Returns the offsets of the batches.
std::vector<std::uint64_t> batches_of(const std::string& image, std::uint64_t sequence) {
  std::vector<std::uint64_t> offsets;
  SegmentReader reader(image, sequence, WallClock{});
  while (const auto batch = reader.find_batch()) offsets.push_back(batch->offset);
  return offsets;
}

}  // namespace

TEST_CASE("a backup of a journal at rest restores the same queue") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegment});
  for (int i = 0; i < 300; ++i) queue->put(100);
  queue->remove(17);
  queue->settle();
  TestDisk copy;
  const auto report = back_up(disk, copy, &copy);
  REQUIRE(report.ok());
  CHECK(report.value().segments > 1);
  CHECK(report.value().next_lsn == queue->journal().appended());
  CHECK(opened(copy)->state() == queue->state());
}

TEST_CASE("a backup of an empty journal is an empty journal") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegment});
  TestDisk copy;
  REQUIRE(back_up(disk, copy, &copy).ok());
  CHECK(opened(copy)->state() == queue->state());
}

TEST_CASE("a backup of an empty directory is refused") {
  TestDisk disk;
  TestDisk copy;
  CHECK_FALSE(back_up(disk, copy, &copy).ok());
}

TEST_CASE("a backup of a log being written and compacted has everything that was there before") {
  for (int churn = 1; churn < 60; churn += 3) {
    CAPTURE(churn);
    TestDisk disk;
    const auto queue = opened(disk, {.segment_bytes = kSegment});
    for (int i = 0; i < 200; ++i) queue->put(100, 10);
    queue->settle();
    const JobId last = queue->put(1, 10);
    queue->settle();
    Disturbed disturbed(disk, [&] {
      for (int i = 0; i < churn; ++i) queue->remove(queue->put(200));
      queue->settle();
    });
    TestDisk copy;
    const auto report = back_up(disturbed, copy, &copy);
    REQUIRE(report.ok());
    const auto restored = opened(copy);
    CHECK(restored->engine().info().jobs.total() >= 201);
    CHECK(restored->engine().info().jobs.total() <= 202);
    for (JobId id = 1; id <= last; ++id) REQUIRE(restored->engine().queries().peek(id).has_value());
  }
}

TEST_CASE("a damaged journal is not copied as a whole journal") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegment});
  for (int i = 0; i < 5; ++i) {
    queue->put(100);
    queue->settle();
  }
  disk.flip(segment_name(1), kSegmentHeaderBytes + kBatchHeaderBytes + 20);
  TestDisk copy;
  const auto report = back_up(disk, copy, &copy);
  REQUIRE_FALSE(report.ok());
  const std::uint64_t at = kSegmentHeaderBytes + kBatchHeaderBytes;  // the unreadable record
  CHECK(report.error().message ==
        fmt::format("journal.0000000001 is damaged at offset {}: the log breaks off here, and goes "
                    "on later",
                    at));
  CHECK(copy.names().empty());
}

TEST_CASE(
    "a flipped bit in the first or last batch of a segment is refused if other segments follow") {
  const auto journal = several_segments();
  const auto names = journal.names();
  REQUIRE(names.size() >= 5);
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    const auto batches = batches_of(journal.contents(names[i]), *sequence_of(names[i]));
    if (batches.empty()) continue;  // preallocated
    const bool others_follow =
        !batches_of(journal.contents(names[i + 1]), *sequence_of(names[i + 1])).empty();
    if (!others_follow) continue;
    for (const std::uint64_t batch : {batches.front(), batches.back()}) {
      CAPTURE(names[i]);
      CAPTURE(batch);
      TestDisk disk(journal.files());
      disk.flip(names[i], batch + 20, 1);
      TestDisk copy;
      const auto report = back_up(disk, copy, &copy);
      REQUIRE_FALSE(report.ok());
      CHECK(report.error().message.find(
                fmt::format("{} is damaged at offset {}", names[i], batch)) == 0);
      CHECK(copy.names().empty());
    }
  }
}

TEST_CASE("a journal without its first segments and without a whole batch is refused") {
  const auto journal = several_segments();
  const std::string last = journal.names().back();
  REQUIRE(last > segment_name(1));
  const std::string& image = journal.contents(last);
  for (const std::string& rest : {std::string(), std::string(1000, 'x'), std::string(1000, '\0')}) {
    CAPTURE(rest.size());
    TestDisk disk(TestDisk::Contents{{last, image.substr(0, kSegmentHeaderBytes) + rest}});
    TestDisk copy;
    const auto report = back_up(disk, copy, &copy);
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().message.find(last + " is damaged at offset 64: ") == 0);
    CHECK(copy.names().empty());
    CHECK_FALSE(JournaledQueue::open(disk, {}).ok());
  }
}

TEST_CASE("a missing segment between others is refused, and the error names it") {
  const auto journal = several_segments();
  const auto names = journal.names();
  for (std::size_t i = 1; i + 1 < names.size(); ++i) {
    TestDisk disk(journal.files());
    disk.lose(names[i]);
    TestDisk copy;
    const auto report = back_up(disk, copy, &copy);
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().message == names[i] + " is missing");
    CHECK(copy.names().empty());
  }
}

TEST_CASE("a backup that recovery would refuse is refused, and leaves nothing") {
  const auto journal = several_segments();
  const auto names = journal.names();
  std::size_t lost = 0;
  for (; lost + 1 < names.size() && names[lost] != "journal.0000000005"; ++lost) {
    TestDisk disk(journal.files());
    for (std::size_t i = 0; i <= lost; ++i) disk.lose(names[i]);
    TestDisk copy;
    const auto report = back_up(disk, copy, &copy);
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().message.find(names[lost + 1] + " is the oldest segment, and the log") ==
          0);
    CHECK(copy.names().empty());
  }
  CHECK(lost > 2);
}

TEST_CASE("a segment that is missing in a listing makes the copy start again") {
  TestDisk disk(several_segments().files());
  const std::string oldest = disk.names().front();
  const std::string image = disk.contents(oldest);
  disk.lose(oldest);
  int looks = 0;
  Disturbed disturbed(disk, [&] {
    if (++looks == 3) disk.place(oldest, image);
  });
  TestDisk copy;
  REQUIRE(back_up(disturbed, copy, &copy).ok());
  CHECK(copy.has(oldest));
}

TEST_CASE("a write in progress while the last segment was read is read again") {
  // Each disturbance fills more than a segment, so each file is outdated when the next is read.
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegment});
  for (int i = 0; i < 20; ++i) queue->put(100);
  queue->settle();
  int reads = 0;
  Disturbed disturbed(disk, [&] {
    if (++reads > 8) return;
    for (int i = 0; i < 30; ++i) queue->put(1000);
    queue->settle();
  });
  TestDisk copy;
  const auto report = back_up(disturbed, copy, &copy);
  REQUIRE(report.ok());
  CHECK(opened(copy)->engine().info().jobs.total() >= 20);
}

TEST_CASE("a segment that grows at each read is read again") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegment});
  for (int i = 0; i < 30; ++i) {
    queue->put(100);
    queue->settle();
  }
  const auto batches = batches_of(disk.contents(segment_name(1)), 1);
  REQUIRE(batches.size() > 20);
  const auto flip = [&](std::size_t batch) { disk.flip(segment_name(1), batches[batch] + 20, 1); };
  // The backup finds an incomplete batch before a complete batch; at the next read that batch is
  // complete, but the next batch is not.
  std::size_t torn = 10;
  flip(torn);
  Disturbed disturbed(disk, [&] {
    if (torn == 20) return;
    flip(torn);
    if (++torn < 20) flip(torn);
  });
  TestDisk copy;
  const auto report = back_up(disturbed, copy, &copy);
  CHECK(torn == 20);
  REQUIRE(report.ok());
  CHECK(opened(copy)->state() == queue->state());
}

TEST_CASE("a file that is reused for another segment while it is read makes the copy start again") {
  FullJournal journal(kSegment);
  TestDisk copy;
  const auto report = back_up(journal.disturbed(), copy, &copy);
  REQUIRE(report.ok());
  CHECK(opened(copy)->state() == journal.state());
}

TEST_CASE("a job's body that looks like a batch does not end the copy") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegment});
  std::string body(kBatchHeaderBytes, '\0');
  // The position of the false batch: after the segment header, the batch, and the head of its own
  // record.
  const std::uint64_t at = kSegmentHeaderBytes + kBatchHeaderBytes + added_bytes(7, 0) / 8 * 8;
  write_batch_header({body.data(), body.size()}, seed_of(1),
                     {.directory = 1, .offset = at, .lsn = 999, .durable = 999});
  std::string padded(at - (kSegmentHeaderBytes + kBatchHeaderBytes + 72 + 7), 'x');
  queue->put_body(padded + body);
  queue->settle();
  TestDisk copy;
  const auto report = back_up(disk, copy, &copy);
  REQUIRE(report.ok());
  CHECK(opened(copy)->state() == queue->state());
}
