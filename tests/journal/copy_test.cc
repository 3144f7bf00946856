// A journal written in one pass.
#include "journal/copy.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "journal/segment.h"
#include "tests/journal/sample.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {

namespace {

using sample::Collected;
using sample::kClock;

LogCopy::Settings settings(std::uint64_t segment_bytes) {
  return {.directory = sample::kDirectory,
          .segment_bytes = segment_bytes,
          .clock = kClock,
          .now = sample::kNow};
}

Added with_body(JobId id, std::uint32_t bytes) {
  return sample::added(id, kDefaultTube, std::string(bytes, static_cast<char>(id)));
}

Examined examined(Storage& disk, Collected& collected) {
  auto found = examine(disk, kClock, collected, nullptr);
  REQUIRE_MESSAGE(found, found.error().message);
  return *found;
}

}  // namespace

TEST_CASE("a copy has the facts that were given and a clean end") {
  std::mt19937_64 random(1);
  TestDisk disk;
  LogCopy copy(disk, settings(8'000));
  std::vector<Fact> facts = sample::every_fact();
  while (facts.size() < 1'000) {
    Fact fact = sample::random_fact(random);
    // Ids in the order in which a queue assigns them.
    if (Added* added = added_in(fact)) added->id = facts.size();
    if (auto* key = std::get_if<Remembered>(&fact)) key->id = facts.size();
    if (auto* removed = std::get_if<Removed>(&fact)) removed->id = facts.size();
    facts.push_back(fact);
  }
  for (const Fact& fact : facts) copy.fact(fact);
  CHECK(copy.facts() == facts.size());
  REQUIRE(copy.finish());

  Collected collected;
  const Examined found = examined(disk, collected);
  CHECK(found.directory == sample::kDirectory);
  CHECK(found.segments.size() > 10);
  CHECK(found.current == found.segments.size() - 1);
  CHECK(found.facts == facts.size());
  CHECK(found.next_lsn == facts.size());
  CHECK(found.next_job_id == 0x123456789 + 1);
  CHECK(found.clean);
  CHECK_FALSE(found.cut);
  CHECK(found.leftovers.empty());
  const std::vector<Fact> read = collected.facts();
  REQUIRE(read.size() == facts.size());
  for (std::size_t i = 0; i < facts.size(); ++i) {
    REQUIRE(sample::same(read[i], facts[i]));
  }
  for (const auto& [name, contents] : disk.durable_files()) CHECK(contents.size() <= 8'000);
}

TEST_CASE("a copy without facts is one empty segment with a clean end") {
  TestDisk disk;
  LogCopy copy(disk, settings(1'000));
  copy.use_ids_below(42);
  copy.use_ids_below(7);
  REQUIRE(copy.finish());
  CHECK(disk.names() == std::vector<std::string>{"journal.0000000001"});
  Collected collected;
  const Examined found = examined(disk, collected);
  CHECK(found.clean);
  CHECK(found.facts == 0);
  CHECK(found.next_job_id == 42);
  REQUIRE(collected.batches().size() == 1);
  CHECK(collected.batches()[0].written == sample::kNow);
}

TEST_CASE("a record larger than a segment has a segment of its own") {
  TestDisk disk;
  LogCopy copy(disk, settings(1'000));
  copy.fact(Removed{.id = 1});
  copy.fact(with_body(2, 5'000));
  copy.fact(with_body(3, 5'000));
  copy.fact(Removed{.id = 4});
  REQUIRE(copy.finish());
  Collected collected;
  const Examined found = examined(disk, collected);
  REQUIRE(found.segments.size() == 4);
  CHECK(found.segments[1].used_bytes ==
        kSegmentHeaderBytes + kBatchHeaderBytes + added_bytes(7, 5'000));
  CHECK(found.clean);
}

TEST_CASE("batches have about the target size, and say what was on disk before their segment" *
          doctest::test_suite("slow")) {
  TestDisk disk;
  LogCopy copy(disk, settings(10U << 20U));
  constexpr std::uint32_t kBody = 300'000;
  for (JobId id = 1; id <= 50; ++id) copy.fact(with_body(id, kBody));
  REQUIRE(copy.finish());
  Collected collected;
  CHECK(examined(disk, collected).segments.size() == 2);
  std::uint64_t segment = 0;
  std::uint64_t batch_at = 0;
  Lsn lsn = 0;
  Lsn durable = 0;
  for (const auto& entry : collected.entries()) {
    if (entry.segment != segment) durable = lsn;
    segment = entry.segment;
    const auto* batch = std::get_if<BatchHeader>(&entry.record);
    if (batch == nullptr) {
      ++lsn;
      CHECK(entry.offset - batch_at < (1U << 20U) + kBody);
      continue;
    }
    batch_at = entry.offset;
    CHECK(batch->lsn == lsn);
    CHECK(batch->durable == (batch->clean ? lsn : durable));
  }
  CHECK(lsn == 50);
  CHECK(collected.batches().size() == 9 + 4 + 1);  // of 34 facts, of 16, and the end
  CHECK(collected.batches().back().clean);
  CHECK(std::ranges::count(collected.batches(), true, &BatchHeader::clean) == 1);
}

TEST_CASE("after a failed write a copy writes nothing more, and finish returns the error") {
  TestDisk disk;
  LogCopy copy(disk, settings(1'000));
  disk.fail_after(Operation::store, 1, Outcome::Kind::no_space, "No space left on device");
  for (JobId id = 1; id <= 100; ++id) copy.fact(Removed{.id = id});
  const auto finished = copy.finish();
  REQUIRE_FALSE(finished);
  CHECK(finished.error().message.find("No space left on device") != std::string::npos);
  CHECK(disk.count(Operation::store) == 2);
  CHECK(copy.facts() < 100);
}

}  // namespace tubed::journal
