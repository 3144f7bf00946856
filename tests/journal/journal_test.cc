// Commits: when facts become durable, the cost of a tick, and the effects of a failure.
#include <algorithm>

#include <doctest/doctest.h>

#include "journal/segment.h"
#include "tests/journal/opened.h"
#include "tests/journal/sample.h"

using namespace tubed;
using namespace tubed::journal;
using namespace std::chrono_literals;

namespace {

std::string state_after(TestDisk& disk, Fate fate) {
  Random random(1);
  TestDisk next = disk.after_crash(random, fate);
  auto queue = JournaledQueue::open(next, {});
  REQUIRE(queue.ok());
  return (*queue)->state();
}

}  // namespace

TEST_CASE("all facts of a tick are written with one write and, with always, one sync") {
  TestDisk disk;
  const auto queue = opened(disk);
  const auto writes = disk.count(Operation::write);
  const auto syncs = disk.count(Operation::sync);
  for (int i = 0; i < 20; ++i) queue->put(100);
  CHECK(queue->journal().appended() == queue->journal().durable() + 20);
  queue->settle();
  CHECK(disk.count(Operation::write) == writes + 1);
  CHECK(disk.count(Operation::sync) == syncs + 1);
  CHECK(queue->journal().appended() == queue->journal().durable());
}

TEST_CASE("a segment gets version 2 with the first record that needs it") {
  TestDisk disk;
  const auto queue = opened(disk);
  const auto version = [&] { return version_of(disk.contents(segment_name(1))); };
  queue->put(100);
  queue->settle();
  CHECK(version() == 1);
  const auto writes = disk.count(Operation::write);
  queue->engine().flush(queue->now(), kDefaultTube, *queue);
  queue->settle();
  CHECK(version() == 2);
  CHECK(disk.count(Operation::write) == writes + 2);  // the header, and the batch
  CHECK(queue->journal().durable() == queue->journal().appended());
  queue->put(100);
  queue->engine().flush(queue->now(), kDefaultTube, *queue);
  queue->settle();
  CHECK(disk.count(Operation::write) == writes + 3);
  // A server that no longer flushes writes version 1 again.
  for (int i = 0; i < 10; ++i) {
    queue->put(5000);
    queue->settle();
  }
  const LogStats stats = queue->journal().stats();
  CHECK(stats.current_segment > 2);
  CHECK(version_of(disk.contents(segment_name(stats.current_segment))) == 1);
  CHECK(state_after(disk, Fate::power_loss) == queue->state());
}

TEST_CASE("a segment gets version 3 with the first recorded reservation") {
  TestDisk disk;
  const auto queue = opened(disk, {.reservations = true});
  const auto version = [&] { return version_of(disk.contents(segment_name(1))); };
  queue->put(100);
  queue->settle();
  CHECK(version() == 1);
  REQUIRE(queue->reserve() == 1);
  queue->settle();
  CHECK(version() == 3);
  queue->engine().flush(queue->now(), kDefaultTube, *queue);
  queue->settle();
  CHECK(version() == 3);
}

TEST_CASE("a version that a crash has half raised is raised again, never lowered") {
  TestDisk disk;
  const auto queue = opened(disk, {.reservations = true});
  queue->put(100);
  queue->settle();
  const std::string low = disk.contents(segment_name(1)).substr(0, kSegmentHeaderBytes);
  queue->reserve();
  queue->settle();
  // The record is on disk, but one byte of the header is not.
  TestDisk::Contents files = disk.durable_files();
  files[segment_name(1)][60] = low[60];
  TestDisk next(files);
  const auto again = opened(next, {.reservations = true});
  CHECK(again->state() == queue->state());
  again->engine().flush(again->now(), kDefaultTube, *again);  // needs only version 2
  again->settle();
  CHECK(version_of(next.contents(segment_name(1))) == 3);
  CHECK(state_after(next, Fate::power_loss) == again->state());  // no job remains
}

TEST_CASE("facts after make_room are in one batch, whatever their size") {
  for (const std::size_t bytes : {100U, 5'000U, 40'000U}) {
    CAPTURE(bytes);
    TestDisk disk;
    const auto queue = opened(disk);  // with segments of 16 KiB
    const std::size_t facts = 5;
    Lsn end = queue->journal().appended();
    for (int entry = 0; entry < 20; ++entry) {
      queue->journal().make_room(facts * added_bytes(kMaxTubeNameBytes, bytes));
      for (std::size_t i = 0; i < facts; ++i) queue->put(bytes);
      end += facts;
      REQUIRE(queue->journal().appended() >= end);
      if (entry % 3 == 0) queue->settle();
    }
    queue->settle();
    sample::Collected collected;
    REQUIRE(examine(disk, {}, collected, nullptr));
    std::size_t with_facts = 0;
    for (const BatchHeader& batch : collected.batches()) {
      if (batch.lsn < end) CHECK(batch.lsn % facts == 0);
      with_facts += batch.facts > 0 ? 1 : 0;
    }
    CHECK(with_facts >= 7);
    CHECK(state_after(disk, Fate::power_loss) == queue->state());
  }
}

TEST_CASE("compaction waits for a job that cannot be described yet, then continues with it") {
  TestDisk disk;
  const auto queue = opened(disk);
  queue->put(100, 5);
  queue->fact(Applied{.index = 9, .term = 4, .chain = 7});
  const auto churn = [&] {
    for (int i = 0; i < 100; ++i) {
      queue->remove(queue->put(3'000));
      queue->settle();
    }
  };
  queue->set_describes(false);
  churn();
  CHECK(queue->journal().stats().oldest_segment == 1);
  CHECK(queue->journal().stats().records_migrated == 0);
  queue->journal().flush();
  CHECK_FALSE(queue->journal().flush());  // not to be called again at once
  queue->set_describes(true);
  churn();
  CHECK(queue->journal().stats().oldest_segment > 1);
  CHECK(queue->journal().stats().records_migrated > 1);
  Random random(1);
  TestDisk next = disk.after_crash(random, Fate::power_loss);
  const auto again = opened(next);
  CHECK(again->state() == queue->state());
  CHECK(again->found().applied == Applied{.index = 9, .term = 4, .chain = 7});
}

TEST_CASE("a held job is copied with its reservation") {
  TestDisk disk;
  const auto queue = opened(disk, {.reservations = true});
  queue->put(100);
  REQUIRE(queue->reserve() == 1);
  for (int i = 0; i < 100; ++i) {
    queue->remove(queue->put(3'000));
    queue->settle();
  }
  CHECK(queue->journal().stats().records_migrated > 1);
  Random random(1);
  TestDisk next = disk.after_crash(random, Fate::power_loss);
  const auto again = opened(next, {.reservations = true});
  CHECK(again->engine().recorded_reservations().held_over_count() == 1);
  CHECK(again->state() == queue->state());
}

TEST_CASE("a segment's version is raised as soon as the disk has room") {
  TestDisk disk;
  const auto queue = opened(disk);
  queue->put(100);
  queue->settle();
  disk.fail_after(Operation::write, 0, Outcome::Kind::no_space, "of a test", 1);
  queue->engine().flush(queue->now(), kDefaultTube, *queue);
  queue->settle();
  CHECK(version_of(disk.contents(segment_name(1))) == 1);
  CHECK(queue->journal().durable() < queue->journal().appended());
  queue->pass(2s);
  CHECK(version_of(disk.contents(segment_name(1))) == 2);
  CHECK(queue->journal().durable() == queue->journal().appended());
  CHECK_FALSE(queue->failed());
}

TEST_CASE("jobs flushed before a restart are removed after it") {
  TestDisk disk;
  std::string state;
  {
    const auto queue = opened(disk);
    for (int i = 0; i < 5; ++i) queue->put(100);
    queue->engine().flush(queue->now(), kDefaultTube, *queue);
    queue->settle();
    state = queue->state();
  }
  Random random(1);
  TestDisk next = disk.after_crash(random, Fate::power_loss);
  const auto queue = opened(next);
  CHECK(queue->state() == state);
  CHECK(queue->found().liveness.jobs() == 5);
  REQUIRE(queue->engine().has_removals(queue->now()));
  queue->engine().remove_pending(queue->now(), *queue, *queue);
  queue->settle();
  CHECK(queue->engine().info().memory_bytes == 0);
  CHECK(queue->journal().stats().live_bytes == 0);
  CHECK(queue->state() == state);
}

TEST_CASE("no fact is durable before it is on disk") {
  TestDisk disk;
  const auto queue = opened(disk);
  queue->put(100);
  queue->journal().flush();
  CHECK(queue->journal().submitted() == 1);
  CHECK(queue->journal().durable() == 0);
  queue->put(100);
  CHECK(queue->journal().appended() == 2);
  CHECK(queue->journal().submitted() == 1);
  disk.run_all();
  CHECK(queue->journal().durable() == 1);
  queue->settle();
  CHECK(queue->journal().durable() == 2);
}

TEST_CASE("the first commit after a start is synced in every mode") {
  for (const Duration sync : {Duration(50ms), Duration::max()}) {
    TestDisk disk;
    const auto queue = opened(disk, {.sync = sync});
    queue->put(100);
    queue->settle();
    const auto first = queue->state();
    queue->put(100);
    queue->settle();
    TestDisk next(disk.durable_files());
    auto after = JournaledQueue::open(next, {});
    REQUIRE(after.ok());
    CHECK((*after)->state() == first);
  }
}

TEST_CASE("the stats have the durations of commits and their numbers of facts") {
  TestDisk disk;
  const auto queue = opened(disk);
  const auto commit = [&](int facts, Duration takes) {
    for (int i = 0; i < facts; ++i) queue->put(10);
    while (queue->journal().flush()) {
      queue->let_time_pass(1ms);  // the commit may wait for further changes
    }
    REQUIRE(queue->journal().submitted() == queue->journal().appended());
    queue->let_time_pass(takes);
    queue->settle();
  };
  const auto nothing = queue->journal().stats();
  commit(1, 150us);
  commit(3, 30ms);
  commit(30, 3s);
  const auto counts = queue->journal().stats();
  CHECK(counts.commits == nothing.commits + 3);
  const auto in = [](const HistogramCounts& view, std::int64_t bound) {
    const auto place = std::find(view.bounds.begin(), view.bounds.end(), bound);
    return view.counts[static_cast<std::size_t>(place - view.bounds.begin())];
  };
  CHECK(counts.commit_times.total() == 3);
  CHECK(counts.commit_times.sum == doctest::Approx(3'030'150'000.0));
  CHECK(in(counts.commit_times, 200'000) == 1);
  CHECK(in(counts.commit_times, 50'000'000) == 1);
  CHECK(counts.commit_times.counts[counts.commit_times.bounds.size()] == 1);
  CHECK(counts.commit_records.total() == 3);
  CHECK(counts.commit_records.sum == 34);
  CHECK(in(counts.commit_records, 1) == 1);
  CHECK(in(counts.commit_records, 5) == 1);
  CHECK(in(counts.commit_records, 50) == 1);
  CHECK_FALSE(counts.full);
}

TEST_CASE("with always, acknowledged changes survive a power loss") {
  TestDisk disk;
  const auto queue = opened(disk);
  for (int i = 0; i < 30; ++i) queue->put(100, 5, Seconds{i % 2 == 0 ? 0U : 1000U});
  queue->remove(3);
  queue->settle();
  CHECK(state_after(disk, Fate::power_loss) == queue->state());
}

TEST_CASE("with an interval a fact is durable after the write, and on disk after the interval") {
  TestDisk disk;
  const auto queue = opened(disk, {.sync = 50ms});
  queue->put(100);
  queue->settle();  // the first commit
  const auto syncs = disk.count(Operation::sync);
  queue->put(100);
  queue->settle();
  CHECK(queue->journal().durable() == 2);
  CHECK(disk.count(Operation::sync) == syncs);
  CHECK(queue->journal().next_deadline() == queue->now() + 50ms);
  queue->pass(49ms);
  CHECK(disk.count(Operation::sync) == syncs);
  queue->pass(1ms);
  CHECK(disk.count(Operation::sync) == syncs + 1);
  CHECK(queue->journal().next_deadline() == kNever);
  CHECK(state_after(disk, Fate::power_loss) == queue->state());
}

TEST_CASE("in no mode does a killed server lose acknowledged changes") {
  for (const Duration sync : {Duration(0s), Duration(50ms), Duration::max()}) {
    TestDisk disk;
    const auto queue = opened(disk, {.sync = sync});
    for (int i = 0; i < 300; ++i) queue->put(100);
    queue->settle();
    CHECK(state_after(disk, Fate::kill) == queue->state());
  }
}

TEST_CASE("a change to always makes older facts durable first") {
  TestDisk disk;
  const auto queue = opened(disk, {.sync = Duration::max()});
  for (int i = 0; i < 300; ++i) queue->put(100);  // several segments
  queue->journal().flush();
  queue->set({.sync = Duration::zero()});
  queue->settle();
  queue->put(1);
  queue->settle();
  CHECK(queue->journal().durable() == 301);
  CHECK(state_after(disk, Fate::power_loss) == queue->state());
}

TEST_CASE("after a failed write nothing more is acknowledged") {
  TestDisk disk;
  const auto queue = opened(disk);
  queue->put(100);
  queue->settle();
  disk.fail_after(Operation::write, 0);
  queue->put(100);
  queue->settle();
  CHECK(queue->failure().find("Input/output error") != std::string::npos);
  CHECK(queue->journal().durable() == 1);
  queue->put(100);
  queue->settle();
  CHECK(queue->journal().durable() == 1);
}

TEST_CASE("after a failed sync nothing more is acknowledged, in every mode that syncs") {
  for (const Duration sync : {Duration(0s), Duration(50ms)}) {
    TestDisk disk;
    const auto queue = opened(disk, {.sync = sync});
    disk.fail_after(Operation::sync, 0);
    queue->put(100);
    queue->settle();
    queue->pass(50ms);
    CHECK(queue->failed());
  }
}

TEST_CASE("a job larger than a segment has a segment of its own") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = 4096});
  queue->put(10);
  queue->put(50'000);
  queue->put(10);
  queue->settle();
  CHECK(queue->journal().durable() == 3);
  CHECK(state_after(disk, Fate::power_loss) == queue->state());
}

TEST_CASE("an orderly stop leaves a mark, and everything is on disk in every mode") {
  for (const Duration sync : {Duration(0s), Duration(50ms), Duration::max()}) {
    TestDisk disk;
    const auto queue = opened(disk, {.sync = sync});
    for (int i = 0; i < 300; ++i) queue->put(100);
    bool stopped = false;
    queue->journal().close([&] { stopped = true; });
    queue->settle();
    CHECK(stopped);
    Random random(1);
    TestDisk next = disk.after_crash(random, Fate::power_loss);
    auto again = JournaledQueue::open(next, {});
    REQUIRE(again.ok());
    CHECK((*again)->found().clean);
    CHECK((*again)->state() == queue->state());
  }
}

TEST_CASE("ids continue after a restart even if no job remains") {
  TestDisk disk;
  auto queue = opened(disk);
  for (int i = 0; i < 5; ++i) queue->remove(queue->put(10));
  queue->settle();
  queue = opened(disk);
  CHECK(queue->put(10) == 6);
}

TEST_CASE("the log continues where it ended, in the same segment") {
  TestDisk disk;
  auto queue = opened(disk);
  std::string state;
  for (int i = 0; i < 10; ++i) {
    queue->put(50);
    queue->settle();
    state = queue->state();
    queue = opened(disk);
    CHECK(queue->state() == state);
  }
  CHECK(queue->journal().stats().current_segment == 1);
}
