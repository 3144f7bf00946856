// The wall clock is stepped, or runs while monotonic time stops: after a restart each delay and
// each pause has the same time left as before.
#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/journal/opened.h"
#include "tests/share.h"

using namespace tubed;
using namespace tubed::journal;
using namespace std::chrono_literals;

namespace {

// A queue on a machine whose clock can be set.
class SteppedQueue {
 public:
  explicit SteppedQueue(const JournaledQueue::Settings& settings = {}) : settings_(settings) {
    queue_ = opened(disk_, settings_);
  }

  JournaledQueue& operator*() { return *queue_; }
  JournaledQueue* operator->() { return queue_.get(); }
  TestDisk& disk() { return disk_; }

  // Acts like the first tick after a step: the journal notices the step but has written nothing
  // yet.
  void step_clock(Duration by) {
    settings_.clock.offset += by;
    queue_->step_clock(settings_.clock);
  }

  // Kills and restarts the server at the same wall time, with a new monotonic clock.
  void restart() {
    settings_.clock.offset += queue_->now() - JournaledQueue::kStart;
    queue_.reset();
    queue_ = opened(disk_, settings_);
  }

  void pause(std::string_view tube, Seconds duration) {
    queue_->engine().use(queue_->session(), queue_->now(), tube);
    queue_->engine().pause(queue_->now(), tube, {duration}, *queue_);
  }

  // Returns all jobs and pauses with their states and remaining whole seconds.
  std::string deadlines() {
    struct Ids final : FactSink {
      void fact(const Fact& fact) override {
        if (const Added* added = added_in(fact)) ids.push_back(added->id);
      }
      std::vector<JobId> ids;
    } durable;
    const engine::Engine& engine = queue_->engine();
    engine.durable_state().visit(queue_->now(), durable);
    std::string text;
    for (const JobId id : durable.ids) {
      const auto job = engine.queries().job_info(queue_->now(), id);
      text += fmt::format("{} {} {}\n", id, name_of(job->state), whole_seconds(job->time_left));
    }
    std::set<std::string> pauses;  // sorted, because tubes may be created in another order
    engine.tube_list().for_each([&](std::string_view name) {
      const auto left = engine.queries().tube_info(queue_->now(), name)->pause_left;
      if (left > Duration::zero()) pauses.insert(fmt::format("{} {}\n", name, whole_seconds(left)));
    });
    for (const std::string& pause : pauses) text += pause;
    return text;
  }

 private:
  TestDisk disk_;
  JournaledQueue::Settings settings_;
  std::unique_ptr<JournaledQueue> queue_;
};

std::uint64_t records(SteppedQueue& queue) {
  return queue->journal().stats().records_written;
}

}  // namespace

TEST_CASE("a stepped wall clock changes no delay and no pause, not even after a restart") {
  for (const Duration step : {Duration(1h), Duration(-1h), Duration(600ms), Duration(-24h * 365)}) {
    CAPTURE(step.count());
    SteppedQueue queue;
    queue->put(10);
    queue->put(10, 0, Seconds{1800});
    queue.pause("slow", Seconds{5000});
    queue->settle();
    queue.step_clock(step);
    queue->settle();
    // Facts after the step use the new clock at once.
    queue->put(10, 0, Seconds{10});
    queue.pause("later", Seconds{20});
    queue->settle();
    const std::string before = queue.deadlines();
    CHECK(before == "1 ready 0\n2 delayed 1800\n3 delayed 10\nlater 20\nslow 5000\n");
    queue.restart();
    CHECK(queue.deadlines() == before);
  }
}

TEST_CASE("a delay and a pause that have ended do not reappear when the clock is set back") {
  SteppedQueue queue;
  queue->put(10, 0, Seconds{5});
  queue->put(10, 0, Seconds{6});
  queue.pause("slow", Seconds{5});
  queue->pass(6s);
  REQUIRE(queue->reserve() == 1);  // the state of rest on disk is unchanged
  queue.step_clock(-1h);
  queue->settle();
  queue.restart();
  CHECK(queue.deadlines() == "1 ready 0\n2 ready 0\n");
}

TEST_CASE("time during which the monotonic clock stops does not count for a delay") {
  SteppedQueue queue;
  queue->put(10, 0, Seconds{100});
  queue->settle();
  queue->pass(40s);
  queue.step_clock(8h);  // suspended
  queue->pass(20s);
  queue.restart();
  CHECK(queue.deadlines() == "1 delayed 40\n");
}

TEST_CASE("a clock that drifts is followed when it matters, however small its steps") {
  SteppedQueue queue;
  for (int i = 0; i < 100; ++i) queue->put(10, 0, Seconds{1000});
  queue->settle();
  const auto before = records(queue);
  queue.step_clock(300ms);
  queue->settle();
  queue.step_clock(200ms);
  queue->settle();
  CHECK(records(queue) == before);
  queue.step_clock(100ms);
  queue->settle();
  CHECK(records(queue) == before + 100);
  queue.step_clock(0s);
  queue->settle();
  CHECK(records(queue) == before + 100);
  for (int i = 0; i < 40; ++i) {
    queue.step_clock(-300ms);
    queue->settle();
  }
  queue.restart();
  const Duration left = queue->engine().queries().job_info(queue->now(), 1)->time_left;
  CHECK(std::chrono::abs(left - 1000s) <= 500ms);
}

TEST_CASE("no tick writes or examines more than a slice" * doctest::test_suite("slow")) {
  SteppedQueue queue({.segment_bytes = 1 << 20});
  constexpr std::uint64_t kReadyJobs = 30'000;
  constexpr std::uint64_t kDelayedJobs = 20'000;
  for (std::uint64_t i = 0; i < kReadyJobs; ++i) queue->put(1);
  for (std::uint64_t i = 0; i < kDelayedJobs; ++i) queue->put(1, 0, Seconds{1000});
  queue->settle();
  const auto first = records(queue);
  queue.step_clock(1h);
  std::uint64_t most_records = 0;
  std::uint64_t most_looks = 0;
  std::uint64_t ticks = 0;
  for (; records(queue) < first + kDelayedJobs; ++ticks) {
    REQUIRE(ticks < 1000);
    const auto written = records(queue);
    const auto asked = queue->delays_asked();
    queue->journal().flush();
    most_records = std::max(most_records, records(queue) - written);
    most_looks = std::max(most_looks, queue->delays_asked() - asked);
    queue->put(1);  // other clients continue meanwhile
    queue->disk_work();
  }
  CHECK(most_records <= (64 << 10) / kPlacedBytes + 2);
  CHECK(most_looks <= 4096);
  queue->settle();
  CHECK(records(queue) == first + kDelayedJobs + ticks);
  queue.restart();
  CHECK(queue->engine().queries().job_info(queue->now(), kReadyJobs + 1)->time_left == 1000s);
  CHECK(queue->engine().queries().job_info(queue->now(), kReadyJobs + kDelayedJobs)->time_left ==
        1000s);
}

TEST_CASE("a step during a rewrite starts the rewrite again") {
  SteppedQueue queue;
  for (int i = 0; i < 5'000; ++i) queue->put(10, 0, Seconds{1000});
  queue->settle();
  const std::string before = queue.deadlines();
  queue.step_clock(1h);
  queue->journal().flush();
  queue->disk_work();
  queue.step_clock(-3h);
  queue->settle();
  queue.restart();
  CHECK(queue.deadlines() == before);
}

TEST_CASE("an orderly stop writes the deadlines first") {
  SteppedQueue queue;
  for (int i = 0; i < 5'000; ++i) queue->put(10, 0, Seconds{1000});
  queue->settle();
  const std::string before = queue.deadlines();
  queue.step_clock(1h);
  bool stopped = false;
  queue->journal().close([&] { stopped = true; });
  queue->settle();
  CHECK(stopped);
  queue.restart();
  CHECK(queue->found().clean);
  CHECK(queue.deadlines() == before);
}

TEST_CASE("on a full disk the deadlines wait for room, and a stop does not wait for them") {
  for (const bool makes_room : {true, false}) {
    SteppedQueue queue({.max_bytes = 256 << 10});
    for (int i = 0; i < 1'000; ++i) queue->put(10, 0, Seconds{1000});
    std::vector<JobId> large;
    while (queue->journal().has_room_for(1000)) {
      large.push_back(queue->put(1000));
      queue->settle();
    }
    const auto before = records(queue);
    queue.step_clock(1h);
    queue->settle();
    CHECK(records(queue) == before);
    if (makes_room) {
      for (const JobId id : large) {
        queue->remove(id);
        queue->pass(1s);
      }
      const std::string deadlines = queue.deadlines();
      queue.restart();
      CHECK(queue.deadlines() == deadlines);
    } else {
      bool stopped = false;
      queue->journal().close([&] { stopped = true; });
      queue->settle();
      CHECK(stopped);
    }
  }
}

TEST_CASE("rewritten deadlines do not use the reserve, even before the disk has refused to grow") {
  SteppedQueue queue({.segment_bytes = 16 << 10});
  std::vector<JobId> jobs;
  for (int i = 0; i < 2'000; ++i) jobs.push_back(queue->put(10, 0, Seconds{1000}));
  queue->settle();
  REQUIRE_FALSE(queue->full());
  queue.disk().set_capacity(queue.disk().total_bytes());
  queue.step_clock(1h);
  queue->settle();
  for (const JobId id : jobs) {
    queue->remove(id);
    queue->pass(1s);
    REQUIRE(queue->journal().durable() == queue->journal().appended());
  }
}

TEST_CASE("each deadline is rewritten despite clients and compaction" *
          doctest::test_suite("slow")) {
  for (std::uint32_t seed = 1; seed <= 20 / kOneIn; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t bound) {
      return static_cast<std::uint32_t>(random() % bound);
    };
    SteppedQueue queue({.sync = Duration::max(), .segment_bytes = 8192});
    std::vector<JobId> jobs;
    for (int ticks = 0; ticks < 1'500; ++ticks) {
      for (std::uint32_t commands = below(12); commands > 0; --commands) {
        const Seconds delay{below(3) == 0 ? 0 : below(100'000)};
        if (below(5) < 3) {
          jobs.push_back(queue->put(below(300), 0, delay));
        } else if (below(2) == 0 && !jobs.empty()) {
          const auto job = jobs.begin() + below(static_cast<std::uint32_t>(jobs.size()));
          queue->remove(*job);
          jobs.erase(job);
        } else if (const JobId id = queue->reserve(); id != 0) {
          queue->engine().release(queue->session(), queue->now(), id, 1, {delay}, *queue);
        }
      }
      if (below(20) == 0) queue.pause(fmt::format("tube{}", below(9)), Seconds{below(3) * 1'000});
      if (below(100) == 0) queue.step_clock(std::chrono::seconds(below(20'000)) - 10'000s);
      if (below(10) == 0) queue->pass(std::chrono::milliseconds(below(5'000)));
      queue->journal().flush();
      if (below(2) == 0) queue->disk_work();
    }
    CHECK(queue->journal().stats().records_migrated > 0);
    queue->settle();
    const std::string before = queue.deadlines();
    queue.restart();
    REQUIRE(queue.deadlines() == before);
  }
}
