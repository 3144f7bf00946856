// The disk space of a journal: its bound under churn, and the commands that still work when no
// space is left.
#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "journal/segment.h"
#include "tests/journal/opened.h"
#include "tests/share.h"

using namespace tubed;
using namespace tubed::journal;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kSegmentBytes = 64 << 10;

void check_bound(TestDisk& disk, JournaledQueue& queue) {
  const LogStats counts = queue.journal().stats();
  REQUIRE(disk.total_bytes() <= 2 * counts.live_bytes + 2 * kSegmentBytes);
  REQUIRE(counts.file_bytes == disk.total_bytes());
}

// Puts until the journal has no room.
std::vector<JobId> fill(JournaledQueue& queue, std::size_t body_bytes) {
  std::vector<JobId> jobs;
  while (queue.journal().has_room_for(body_bytes)) {
    jobs.push_back(queue.put(body_bytes));
    queue.settle();
    REQUIRE(jobs.size() < 100'000);
  }
  return jobs;
}

// Commands on a disk of any size that is full repeatedly. Each command waits while the journal is
// congested, and the congestion must end by itself.
class FullLife {
 public:
  enum class Others : std::uint8_t { none, take_what_is_free, leave_a_little };

  explicit FullLife(std::uint64_t seed, Others others = Others::none, bool reservations = false)
      : random_(seed) {
    settings_.reservations = reservations;
    largest_body_ = 300 + below(3500);
    settings_.sync = Duration::max();
    choose_segment_size(6);
    disk_.set_capacity(settings_.segment_bytes * (6 + below(40)));
    commands_per_tick_ = 1 + below(60);
    queue_ = opened(disk_, settings_);
    others_ = others;
    leaves_every_ = 20 + below(200);
  }

  void fill() {
    for (std::uint64_t i = 1;; ++i) {
      wait_for_room();
      const std::uint64_t body = below(2) == 0 ? largest_body_ : below(largest_body_);
      if (!queue_->journal().has_room_for(body)) break;
      jobs_.push_back(queue_->put(body));
      if (i % commands_per_tick_ == 0) queue_->settle();
    }
    queue_->settle();
    if (others_ != Others::none) disk_.eat_space();
  }

  void move(std::uint64_t commands) {
    for (std::uint64_t i = 1; i <= commands; ++i) {
      wait_for_room();
      const JobId id = queue_->reserve();
      REQUIRE(id != 0);
      release(id);
      if (settings_.reservations) hold_some();
      if (i % commands_per_tick_ == 0) queue_->settle();
      if (below(500) == 0) queue_->pass(1s);
      if (others_ == Others::leave_a_little && below(leaves_every_) == 0) {
        disk_.leave_space(settings_.segment_bytes / 8 * (1 + below(3)));
      }
    }
  }

  void remove(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      wait_for_room();
      const auto job = below(2) == 0 ? jobs_.begin() : jobs_.end() - 1;
      queue_->remove(*job);
      jobs_.erase(job);
      if (below(2) == 0) queue_->settle();
    }
  }

  void start_again() {
    const std::string before = queue_->state();
    queue_->settle();
    queue_.reset();
    // Smaller bodies: for larger bodies the disk might be too small for a journal.
    if (below(3) == 0) choose_segment_size(1);
    queue_ = opened(disk_, settings_);
    REQUIRE(queue_->state() == before);
  }

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  std::size_t jobs() const { return jobs_.size(); }
  std::uint64_t reused() const { return disk_.count(Operation::reuse); }

 private:
  void release(JobId id) {
    queue_->engine().release(queue_->session(), queue_->now(), id, Priority(below(5)), TimeSpan{},
                             *queue_);
  }

  // Holds some jobs for a time, so compaction copies them with their reservations.
  void hold_some() {
    if (below(3) > 0) return;
    wait_for_room();
    if (held_.size() < jobs_.size() / 2) {
      held_.push_back(queue_->reserve());
    } else if (!held_.empty()) {
      release(held_.front());  // if it is still held
      held_.pop_front();
    }
  }

  // With room for eight of the largest jobs, as the settings ensure.
  void choose_segment_size(std::uint64_t choices) {
    const std::uint64_t wanted = 4096ULL << below(choices);
    settings_.segment_bytes = std::max<std::uint64_t>(8 * (largest_body_ + 512), wanted);
  }

  void wait_for_room() {
    for (int i = 0; i < 3 && queue_->journal().congested(); ++i) queue_->pass(i == 0 ? 0s : 1s);
    REQUIRE_FALSE(queue_->journal().congested());
  }

  std::mt19937_64 random_;
  TestDisk disk_;
  JournaledQueue::Settings settings_;
  std::uint64_t largest_body_ = 0;
  std::uint64_t commands_per_tick_ = 0;
  Others others_ = Others::none;
  std::uint64_t leaves_every_ = 0;  // approximate number of commands
  std::unique_ptr<JournaledQueue> queue_;
  std::deque<JobId> jobs_;
  std::deque<JobId> held_;
};

}  // namespace

TEST_CASE("on a full disk only puts wait, for all sizes" * doctest::test_suite("slow")) {
  for (std::uint64_t seed = 1; seed <= 60 / kOneIn; ++seed) {
    CAPTURE(seed);
    FullLife life(seed);
    for (int round = 0; round < 3; ++round) {
      life.fill();
      life.move(600);
      if (life.below(2) == 0) life.start_again();
      life.remove(1 + life.below(5));
      life.fill();
      life.move(200);
      life.remove(life.jobs() / 2);
    }
  }
}

TEST_CASE("only puts wait if another process takes each freed byte" * doctest::test_suite("slow")) {
  std::uint64_t reused = 0;
  for (std::uint64_t seed = 1; seed <= 60 / kOneIn; ++seed) {
    CAPTURE(seed);
    FullLife life(seed, FullLife::Others::take_what_is_free);
    life.fill();
    for (int round = 0; round < 3; ++round) {
      life.move(1500);
      life.remove(1 + life.below(5));
      life.fill();
      life.move(500);
      life.remove(life.jobs() / 2);
    }
    life.remove(life.jobs());
    reused += life.reused();
  }
  CHECK(reused > 500 / kOneIn);
}

// The disk repeatedly refuses space in the middle of a segment, so some segments remain short.
TEST_CASE("only puts wait if another process leaves a little of the freed space" *
          doctest::test_suite("slow")) {
  for (std::uint64_t seed = 1; seed <= 60 / kOneIn; ++seed) {
    CAPTURE(seed);
    FullLife life(seed, FullLife::Others::leave_a_little);
    life.fill();
    for (int round = 0; round < 5; ++round) {
      life.move(3000);
      life.remove(1 + life.below(5));
      life.fill();
    }
  }
}

TEST_CASE("only puts wait if reservations are recorded" * doctest::test_suite("slow")) {
  for (std::uint64_t seed = 1; seed <= 120 / kOneIn; ++seed) {
    CAPTURE(seed);
    const auto others =
        seed % 2 == 0 ? FullLife::Others::none : FullLife::Others::take_what_is_free;
    FullLife life(seed, others, true);
    life.fill();
    for (int round = 0; round < 3; ++round) {
      life.move(1000);
      life.remove(1 + life.below(5));
      life.fill();
      life.move(300);
      life.remove(life.jobs() / 2);
    }
  }
}

TEST_CASE("release and kick of jobs that stay take no space") {
  for (const std::size_t jobs : {1U, 100U, 3000U}) {
    CAPTURE(jobs);
    TestDisk disk;
    const auto queue = opened(disk, {.segment_bytes = kSegmentBytes});
    for (std::size_t i = 0; i < jobs; ++i) queue->put(100);
    queue->settle();
    for (int i = 0; i < 20'000; ++i) {
      const JobId id = queue->reserve();
      REQUIRE(id != 0);
      if (i % 2 == 0) {
        queue->engine().release(queue->session(), queue->now(), id, 1, TimeSpan{}, *queue);
      } else {
        queue->engine().bury(queue->session(), queue->now(), id, 1, *queue);
        queue->engine().kick_job(queue->now(), id, {}, *queue);
      }
      if (i % 10 == 0) {
        queue->settle();
        check_bound(disk, *queue);
      }
    }
    CHECK(queue->journal().stats().records_migrated > 0);
  }
}

TEST_CASE("put and delete next to jobs that stay take no space") {
  for (const std::size_t jobs : {0U, 1U, 1000U}) {
    CAPTURE(jobs);
    TestDisk disk;
    const auto queue = opened(disk, {.segment_bytes = kSegmentBytes});
    for (std::size_t i = 0; i < jobs; ++i) queue->put(200, 10);
    for (int i = 0; i < 20'000; ++i) {
      queue->remove(queue->put(static_cast<std::size_t>(i % 700)));
      if (i % 7 == 0) {
        queue->settle();
        check_bound(disk, *queue);
      }
    }
  }
}

TEST_CASE("a queue that grows and shrinks again returns its space") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegmentBytes});
  std::vector<JobId> jobs;
  for (int i = 0; i < 5000; ++i) {
    jobs.push_back(queue->put(300));
    if (i % 9 == 0) queue->settle();
  }
  queue->settle();
  check_bound(disk, *queue);
  // Every third job, so every segment remains partly live.
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (i % 3 != 0) queue->remove(jobs[i]);
    if (i % 9 != 0) continue;
    queue->settle();
    check_bound(disk, *queue);
  }
  for (std::size_t i = 0; i < jobs.size(); i += 3) {
    queue->remove(jobs[i]);
    queue->settle();
    check_bound(disk, *queue);
  }
  CHECK(disk.total_bytes() <= 2 * kSegmentBytes);
}

// Commands continue, so each segment might wait for its own sync.
TEST_CASE("segments that die together are removed after one sync") {
  for (const Duration sync : {Duration{50ms}, Duration::max()}) {
    CAPTURE(sync.count());
    TestDisk disk;
    const auto queue = opened(disk, {.sync = sync, .segment_bytes = kSegmentBytes});
    std::vector<JobId> jobs;
    for (int i = 0; i < 5000; ++i) {
      jobs.push_back(queue->put(300));
      if (i % 9 == 0) queue->settle();
    }
    queue->settle();
    REQUIRE(disk.names().size() > 20);
    for (const JobId id : jobs) queue->remove(id);
    const std::uint64_t before = disk.count(Operation::sync);
    for (int ticks = 0; disk.names().size() > 8; ++ticks) {
      REQUIRE(ticks < 10'000);
      queue->remove(queue->put(10));
      queue->journal().flush();
      disk.run_one();
    }
    CHECK(disk.count(Operation::sync) - before < 5);
  }
}

TEST_CASE(
    "a power cut at any step of the removal of many segments restores the jobs that were left") {
  constexpr std::uint64_t kStride = 2;
  for (const Duration sync : {Duration::zero(), Duration{50ms}, Duration::max()}) {
    bool is_over = false;
    for (std::uint64_t step = 1; !is_over; step += kStride) {
      CAPTURE(sync.count());
      CAPTURE(step);
      REQUIRE(step < 20'000);
      TestDisk disk;
      const auto queue = opened(disk, {.sync = sync, .segment_bytes = kSegmentBytes});
      std::vector<JobId> jobs;
      for (int i = 0; i < 2000; ++i) {
        jobs.push_back(queue->put(300));
        if (i % 9 == 0) queue->settle();
      }
      queue->settle();
      REQUIRE(disk.names().size() > 8);
      disk.crash_at(disk.steps() + step);
      for (std::size_t i = 0; i + 5 < jobs.size(); ++i) queue->remove(jobs[i]);
      for (int ticks = 0; !disk.off() && !is_over; ++ticks) {
        REQUIRE(ticks < 20'000);
        queue->remove(queue->put(10));
        queue->journal().flush();
        disk.run_one();
        is_over = disk.names().size() <= 4;
      }
      if (is_over) break;
      Random random(step);
      TestDisk after = disk.after_crash(random, Fate::power_loss);
      const auto restored = opened(after, {.sync = sync, .segment_bytes = kSegmentBytes});
      const auto is_there = [&](JobId id) {
        return restored->engine().queries().job_info(restored->now(), id).has_value();
      };
      // A prefix of the changes: all puts and some removals, or the first puts.
      const auto first = std::ranges::find_if(jobs, is_there);
      const auto end = std::find_if_not(first, jobs.end(), is_there);
      REQUIRE(std::none_of(end, jobs.end(), is_there));
      CHECK((end == jobs.end() || first == jobs.begin()));
      if (sync == Duration::zero()) CHECK(jobs.end() - first >= 5);
    }
  }
}

TEST_CASE("a pause outlives the segment in which it was recorded, and is dropped when it ends") {
  TestDisk disk;
  auto queue = opened(disk, {.segment_bytes = kSegmentBytes});
  REQUIRE(queue->engine().use(queue->session(), queue->now(), "slow"));
  queue->put(10);
  REQUIRE(queue->engine().pause(queue->now(), "slow", {{1000}}, *queue));
  REQUIRE(queue->engine().use(queue->session(), queue->now(), "fast"));
  for (int i = 0; i < 3000; ++i) {
    queue->remove(queue->put(300));
    if (i % 9 == 0) queue->settle();
  }
  queue->settle();
  CHECK(queue->journal().stats().oldest_segment > 1);
  const std::string state = queue->state();
  CHECK(state.find("paused slow 1000") != std::string::npos);
  queue = opened(disk, {.segment_bytes = kSegmentBytes});
  CHECK(queue->state() == state);
}

TEST_CASE("at journal.max_bytes puts are refused, and everything else continues to work" *
          doctest::test_suite("slow")) {
  TestDisk disk;
  constexpr std::uint64_t kMax = 20 * kSegmentBytes;
  const auto queue = opened(disk, {.segment_bytes = kSegmentBytes, .max_bytes = kMax});
  const auto jobs = fill(*queue, 200);
  CHECK(jobs.size() > 2000);
  // Ten times the journal's limit.
  for (std::uint64_t i = 0; i < 10 * kMax / kPlacedBytes; ++i) {
    const JobId id = queue->reserve();
    queue->engine().release(queue->session(), queue->now(), id, 1, TimeSpan{}, *queue);
    if (i % 5 != 0) continue;
    queue->settle();
    REQUIRE(disk.total_bytes() <= kMax);
    REQUIRE_FALSE(queue->journal().congested());
    REQUIRE(queue->journal().durable() == queue->journal().appended());
  }
  for (const JobId id : jobs) {
    queue->remove(id);
    queue->settle();
    REQUIRE(queue->journal().durable() == queue->journal().appended());
  }
  queue->pass(1s);
  CHECK_FALSE(queue->full());
  CHECK(queue->journal().has_room_for(200));
}

TEST_CASE("on a full disk deletes work, and with their space puts work again") {
  TestDisk disk;
  disk.set_capacity(10 * kSegmentBytes);
  const auto queue = opened(disk, {.segment_bytes = kSegmentBytes});
  const auto jobs = fill(*queue, 200);
  CHECK(queue->full());
  for (const JobId id : jobs) {
    queue->remove(id);
    queue->settle();
    REQUIRE(queue->journal().durable() == queue->journal().appended());
  }
  queue->pass(1s);
  CHECK_FALSE(queue->full());
  CHECK(fill(*queue, 200).size() + 10 > jobs.size());
}

TEST_CASE("puts are accepted again when another process frees space") {
  TestDisk disk;
  disk.set_capacity(10 * kSegmentBytes);
  const auto queue = opened(disk, {.segment_bytes = kSegmentBytes});
  fill(*queue, 200);
  CHECK(queue->full());
  disk.set_capacity(100 * kSegmentBytes);
  queue->pass(999ms);
  CHECK(queue->full());
  queue->pass(1ms);
  CHECK_FALSE(queue->full());
  CHECK(queue->journal().has_room_for(200));
}

TEST_CASE("a refused write is retried, and nothing is lost or acknowledged early") {
  TestDisk disk;
  const auto queue = opened(disk, {.segment_bytes = kSegmentBytes});
  disk.fail_after(Operation::write, 0, Outcome::Kind::no_space, "No space left on device", 3);
  queue->put(100);
  queue->settle();
  CHECK(queue->full());
  CHECK(queue->journal().congested());
  CHECK(queue->journal().durable() == 0);
  queue->pass(1s);
  queue->pass(1s);
  CHECK(queue->journal().durable() == 0);
  queue->pass(1s);
  CHECK(queue->journal().durable() == 1);
  CHECK_FALSE(queue->full());
  CHECK_FALSE(queue->journal().congested());
}

TEST_CASE(
    "a disk that has no room for a removal, a trim or a reuse refuses puts and loses nothing") {
  for (const Operation operation : {Operation::remove, Operation::trim, Operation::reuse}) {
    CAPTURE(int(operation));
    TestDisk disk;
    // Another process leaves no room, so segments are reused; or the disk has room until the fault.
    if (operation == Operation::reuse) disk.set_capacity(8 * kSegmentBytes);
    const auto queue = opened(disk, {.segment_bytes = kSegmentBytes});
    std::vector<JobId> jobs;
    if (operation == Operation::reuse) {
      jobs = fill(*queue, 200);
      disk.eat_space();
      REQUIRE(queue->full());
    }
    disk.fail_after(operation, 1, Outcome::Kind::no_space, "Disk quota exceeded", 3);
    const std::uint64_t before = disk.count(operation);
    bool refused = false;
    for (int i = 0; i < 4000 && disk.count(operation) < before + 2; ++i) {
      if (jobs.empty()) {
        queue->remove(queue->put(300));
      } else {
        queue->remove(jobs.back());
        jobs.pop_back();
      }
      queue->settle();
      refused = refused || queue->full();
    }
    REQUIRE(disk.count(operation) >= before + 2);
    CHECK_FALSE(queue->failed());
    if (operation == Operation::remove) {
      CHECK(refused);
      CHECK_FALSE(queue->journal().has_room_for(1 << 20));
    }
    REQUIRE(queue->journal().durable() == queue->journal().appended());
    for (int i = 0; i < 5; ++i) queue->pass(1s);
    CHECK_FALSE(queue->failed());
    if (operation != Operation::reuse) CHECK_FALSE(queue->full());
    CHECK(queue->journal().stats().file_bytes == disk.total_bytes());
    const std::string state = queue->state();
    CHECK(opened(disk, {.segment_bytes = kSegmentBytes})->state() == state);
  }
}

TEST_CASE("a start on a full disk serves its jobs and refuses puts") {
  TestDisk disk;
  disk.set_capacity(10 * kSegmentBytes);
  auto queue = opened(disk, {.segment_bytes = kSegmentBytes});
  const auto jobs = fill(*queue, 200);
  queue = opened(disk, {.segment_bytes = kSegmentBytes});
  CHECK_FALSE(queue->journal().has_room_for(200));
  for (const JobId id : jobs) {
    queue->remove(id);
    queue->settle();
    REQUIRE(queue->journal().durable() == queue->journal().appended());
  }
}

TEST_CASE("a start on a disk without room to free space leaves unused files") {
  TestDisk disk;
  auto queue = opened(disk, {.segment_bytes = kSegmentBytes});
  for (int i = 0; i < 300; ++i) {
    queue->put(1000);
    queue->settle();
  }
  const std::string state = queue->state();
  queue.reset();
  const std::string segment = segment_name(2);
  const std::string image = disk.contents(segment);
  const std::string unfinished = segment_name(99) + ".new";
  disk.place(segment, image + std::string(kSegmentBytes, '\0'));
  disk.place(unfinished, "unfinished");
  for (const Operation operation : {Operation::truncate, Operation::remove_now}) {
    disk.fail_after(operation, 0, Outcome::Kind::no_space, "No space left on device");
  }
  queue = opened(disk, {.segment_bytes = kSegmentBytes});
  CHECK(queue->state() == state);
  CHECK(disk.contents(segment).size() == image.size() + kSegmentBytes);
  CHECK(disk.has(unfinished));
  CHECK(queue->journal().stats().file_bytes ==
        disk.total_bytes() - disk.contents(unfinished).size());
  queue = opened(disk, {.segment_bytes = kSegmentBytes});
  CHECK(queue->state() == state);
  CHECK(disk.contents(segment) == image);
  CHECK_FALSE(disk.has(unfinished));
  CHECK(queue->journal().stats().file_bytes == disk.total_bytes());
  queue.reset();
  // A torn tail must be cut, so a failure to cut is an error.
  disk.place(segment, image + std::string(kSegmentBytes, '\0'));
  disk.fail_after(Operation::truncate, 0);
  CHECK_FALSE(JournaledQueue::open(disk, {.segment_bytes = kSegmentBytes}).ok());
  TestDisk torn(TestDisk::Contents{{segment_name(1), disk.contents(segment_name(1)) + "torn"}});
  torn.fail_after(Operation::truncate, 0, Outcome::Kind::no_space, "No space left on device");
  CHECK_FALSE(JournaledQueue::open(torn, {.segment_bytes = kSegmentBytes}).ok());
  CHECK(JournaledQueue::open(torn, {.segment_bytes = kSegmentBytes}).ok());
}

TEST_CASE("in no mode is a segment removed before its successor has a batch on disk" *
          doctest::test_suite("slow")) {
  for (const Duration sync : {Duration(0s), Duration(50ms), Duration::max()}) {
    // The last job of the first segment is removed when the second segment is filled to different
    // degrees.
    for (std::size_t body = 0; body < 128; body += 8) {
      for (int churn = 20; churn < 50; ++churn) {
        CAPTURE(body);
        CAPTURE(churn);
        TestDisk disk;
        const auto queue = opened(disk, {.sync = sync, .segment_bytes = 4096});
        const JobId first = queue->put(10000);  // too large to be copied early
        queue->settle();
        for (int i = 0; i < churn; ++i) {
          queue->remove(queue->put(body));
          queue->settle();
        }
        queue->remove(first);
        queue->settle();
        Random random(body);
        TestDisk next = disk.after_crash(random, Fate::power_loss);
        const auto again = JournaledQueue::open(next, {.segment_bytes = 4096});
        const std::string error = again.ok() ? "" : again.error().message;
        REQUIRE_MESSAGE(again.ok(), error);
      }
    }
  }
}
