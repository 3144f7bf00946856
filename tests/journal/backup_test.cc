// A copy of a journal that somebody is writing.
#include "journal/backup.h"

#include <doctest/doctest.h>

#include "journal/segment.h"
#include "tests/journal/opened.h"

using namespace tubed;
using namespace tubed::journal;

namespace {

constexpr std::uint64_t kSegment = 16 << 10;

// Lets something happen in the middle of a backup: before each read, and each look at the names.
class Disturbed final : public Storage {
 public:
  Disturbed(TestDisk& disk, std::function<void()> disturb)
      : disk_(disk), disturb_(std::move(disturb)) {}

  Result<std::vector<FileInfo>> list() override {
    auto files = disk_.list();
    disturb_();
    return files;
  }
  Result<FileId> open(const std::string& name) override { return disk_.open(name); }
  void close(FileId file) override { disk_.close(file); }
  Result<std::string> read(FileId file) override {
    disturb_();
    return disk_.read(file);
  }
  Result<void> truncate(FileId, std::uint64_t) override { return refuse(); }
  Result<void> sync_now(FileId) override { return refuse(); }
  Result<void> store(const std::string&, std::string_view) override { return refuse(); }
  Result<void> remove_now(const std::string&) override { return refuse(); }
  Result<void> move(const std::string&, const std::string&) override { return refuse(); }
  void create(const std::string&, std::string, std::uint64_t, Created) override { FAIL("create"); }
  void allocate(FileId, std::uint64_t, std::uint64_t, Done) override { FAIL("allocate"); }
  void write(FileId, std::uint64_t, std::vector<std::string_view>, Sync, Done) override {
    FAIL("write");
  }
  void sync(FileId, Done) override { FAIL("sync"); }
  void trim(FileId, std::uint64_t, Done) override { FAIL("trim"); }
  void remove(const std::string&, Done) override { FAIL("remove"); }

 private:
  static Error refuse() { return Error{"a backup changes nothing"}; }

  TestDisk& disk_;
  std::function<void()> disturb_;
};

}  // namespace

TEST_CASE("a backup of a journal at rest is the same queue") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegment});
  for (int i = 0; i < 300; ++i) queue->put(100);
  queue->remove(17);
  queue->settle();
  TestDisk copy;
  const auto report = back_up(disk, copy);
  REQUIRE(report.ok());
  CHECK(report.value().segments > 1);
  CHECK(report.value().next_number == queue->journal().newest());
  CHECK(opened(copy)->state() == queue->state());
}

TEST_CASE("a backup of an empty journal is an empty journal") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegment});
  TestDisk copy;
  REQUIRE(back_up(disk, copy).ok());
  CHECK(opened(copy)->state() == queue->state());
}

TEST_CASE("a backup of nothing is refused") {
  TestDisk disk;
  TestDisk copy;
  CHECK_FALSE(back_up(disk, copy).ok());
}

TEST_CASE("while the log is written and compacted a backup has all that was there before") {
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
    const auto report = back_up(disturbed, copy);
    REQUIRE(report.ok());
    const auto restored = opened(copy);
    CHECK(restored->engine().info().jobs.total() >= 201);
    CHECK(restored->engine().info().jobs.total() <= 202);
    for (JobId id = 1; id <= last; ++id) REQUIRE(restored->engine().peek(id).has_value());
  }
}

TEST_CASE("a damaged journal is not copied as if it were whole") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegment});
  for (int i = 0; i < 5; ++i) {
    queue->put(100);
    queue->settle();
  }
  disk.flip(segment_name(1), kSegmentHeaderBytes + kGroupBytes + 20);
  TestDisk copy;
  const auto report = back_up(disk, copy);
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message == "journal.0000000001 is damaged");
}

TEST_CASE("a job's body that looks like a group ends nothing") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegment});
  std::string body(kGroupBytes, '\0');
  // Where it will stand: behind the header, the group, and the head of its own record.
  const std::uint64_t at = kSegmentHeaderBytes + kGroupBytes + added_bytes(7, 0) / 8 * 8;
  write_group({body.data(), body.size()}, seed_of(1),
              {.directory = 1, .offset = at, .number = 999, .durable = 999});
  std::string padded(at - (kSegmentHeaderBytes + kGroupBytes + 72 + 7), 'x');
  queue->put_body(padded + body);
  queue->settle();
  TestDisk copy;
  const auto report = back_up(disk, copy);
  REQUIRE(report.ok());
  CHECK(opened(copy)->state() == queue->state());
}
