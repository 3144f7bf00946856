// The promise of space at every moment: after each tick and each disk operation, all files together
// have at most twice the live bytes plus three segments; five, if a segment has less than 64 KiB.
// So with journal.max_bytes no put is refused while that fits.
//
// TUBED_SPACE_OPERATIONS sets the number of commands for each size and sync mode; the worst moment
// of each life is then printed. TUBED_SPACE_SEGMENT selects one segment size.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "journal/record.h"
#include "tests/journal/crashes.h"
#include "tests/journal/opened.h"
#include "tests/share.h"

using namespace tubed;
using namespace tubed::journal;
using namespace std::chrono_literals;

namespace {

// Clients that put, release and remove jobs in any order, up to 40 commands per tick. The queue
// grows and shrinks by turns. The disk does only some operations between two ticks, so syncs and
// removals are still running while commands continue.
class BusyLife {
 public:
  BusyLife(const JournaledQueue::Settings& settings, std::size_t jobs, std::uint64_t disk_speed)
      : random_(1), settings_(settings), most_jobs_(jobs), disk_speed_(disk_speed) {
    queue_ = opened(disk_, settings_);
  }

  void run(std::uint64_t commands) {
    std::uint64_t next_phase = 0;
    std::uint64_t ticks_held_back = 0;
    for (std::uint64_t done = 0; done < commands;) {
      if (done >= next_phase) {
        wanted_jobs_ = below(4) == 0 ? below(10) : below(most_jobs_) + 1;
        next_phase = done + 3 * most_jobs_;
      }
      const std::uint64_t before = done;
      for (std::uint64_t i = below(40); i < 40 && !queue_->journal().congested(); ++i) {
        command();
        ++done;
      }
      ticks_held_back = done == before ? ticks_held_back + 1 : 0;
      REQUIRE(ticks_held_back < 1000);
      tick();
    }
  }

  // Runs commands until the journal holds them back although it has room.
  void run_until_held_back() {
    for (int i = 0; !queue_->journal().congested() || queue_->journal().overloaded(); ++i) {
      REQUIRE(i < 1'000'000);
      if (i % 3000 == 0) wanted_jobs_ = below(most_jobs_) + 1;
      if (!queue_->journal().congested()) command();
      if (i % 20 == 0 || queue_->journal().overloaded()) tick();
    }
  }
  void step_clock() {
    settings_.clock = {.offset = std::chrono::hours(below(1'000'000))};
    queue_->step_clock(settings_.clock);
  }
  bool becomes_free() {
    for (int i = 0; i < 1000 && queue_->journal().congested(); ++i) tick();
    return !queue_->journal().congested();
  }
  bool closes() {
    bool closed = false;
    queue_->journal().close([&closed] { closed = true; });
    queue_->settle();
    return closed;
  }
  // True if the queue has each job after an orderly stop.
  bool starts_again() {
    queue_.reset();
    queue_ = opened(disk_, settings_);
    return queue_->found().clean && queue_->found().liveness.jobs() == jobs_.size();
  }

  // The most by which the files have exceeded twice the live bytes, in segments.
  double worst_segments() const { return worst_segments_; }
  // The most of (files - 2 segments) / live bytes, if the live bytes fill at least a segment.
  double worst_ratio() const { return worst_ratio_; }
  std::uint64_t moments() const { return moments_; }
  std::uint64_t moments_beyond() const { return moments_beyond_; }
  // The number of puts refused at journal.max_bytes.
  std::uint64_t refused() const { return refused_; }
  // The most that was left of max_bytes, after twice the live bytes, when a put was refused; in
  // segments.
  double most_left_segments() const { return most_left_segments_; }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  // Up to an eighth of a segment and 8 KiB, as the settings ensure.
  std::uint64_t body_bytes() {
    const std::uint64_t most = std::min<std::uint64_t>(settings_.segment_bytes / 8 - 512, 8192) + 1;
    return below(8) == 0 ? below(most) : below(most / 8 + 1);
  }

  void command() {
    if (below(10) < 7) return put_or_remove();
    const JobId id = queue_->reserve();
    if (id == 0 || (settings_.reservations && below(2) == 0)) return;
    queue_->engine().release(queue_->session(), queue_->now(), id, Priority(below(5)), TimeSpan{},
                             *queue_);
  }

  void put_or_remove() {
    const bool grows = jobs_.size() < wanted_jobs_ ? below(4) > 0 : below(4) == 0;
    if (grows || jobs_.empty()) {
      const std::uint64_t bytes = body_bytes();
      if (!queue_->journal().has_room_for(bytes)) return note_refusal();
      jobs_.push_back(queue_->put(bytes, 0, Seconds{below(8) == 0 ? 1'000'000U : 0U}));
      return;
    }
    std::swap(jobs_[below(jobs_.size())], jobs_.back());
    queue_->remove(jobs_.back());
    jobs_.pop_back();
  }

  void note_refusal() {
    ++refused_;
    const auto left = static_cast<double>(settings_.max_bytes) - 2 * needed_bytes();
    most_left_segments_ =
        std::max(most_left_segments_, left / static_cast<double>(settings_.segment_bytes));
  }

  // A job may have a reservation, whose record is dead from the start.
  double needed_bytes() const {
    const std::uint64_t held = settings_.reservations ? jobs_.size() * kHeldBytes : 0;
    return static_cast<double>(queue_->journal().stats().live_bytes + held);
  }

  void tick() {
    queue_->let_time_pass(100us);
    queue_->journal().flush();
    check();
    for (std::uint64_t i = 1 + below(disk_speed_); i > 0 && disk_.run_one(); --i) check();
    disk_.take_log();
  }

  void check() {
    const LogStats counts = queue_->journal().stats();
    REQUIRE(counts.file_bytes == disk_.total_bytes());
    const double live = needed_bytes();
    const auto files = static_cast<double>(counts.file_bytes);
    const auto segment = static_cast<double>(settings_.segment_bytes);
    ++moments_;
    if (files > 2 * (live + segment)) ++moments_beyond_;
    worst_segments_ = std::max(worst_segments_, (files - 2 * live) / segment);
    if (live >= segment) worst_ratio_ = std::max(worst_ratio_, (files - 2 * segment) / live);
  }

  std::mt19937_64 random_;
  JournaledQueue::Settings settings_;
  std::size_t most_jobs_;
  std::uint64_t disk_speed_;
  TestDisk disk_;
  std::unique_ptr<JournaledQueue> queue_;
  std::vector<JobId> jobs_;
  std::size_t wanted_jobs_ = 0;
  double worst_segments_ = 0;
  double worst_ratio_ = 0;
  std::uint64_t moments_ = 0;
  std::uint64_t moments_beyond_ = 0;
  std::uint64_t refused_ = 0;
  double most_left_segments_ = 0;
};

// 4 KiB: eight jobs of the smallest `limits.job_bytes`; and sizes up to the default.
std::vector<std::uint64_t> segment_sizes() {
  const std::uint64_t only = number_from("TUBED_SPACE_SEGMENT", 0);
  if (only != 0) return {only};
  return {8 * 513, 16 << 10, 64 << 10, 1 << 20, 10 << 20};
}

std::string name_of(Duration sync) {
  if (sync == Duration::max()) return "never";
  return sync == Duration() ? "always" : "interval";
}

}  // namespace

TEST_CASE("the files stay near twice the live bytes and two segments at every moment") {
  const bool is_soak = std::getenv("TUBED_SPACE_OPERATIONS") != nullptr;
  const std::uint64_t commands = number_from("TUBED_SPACE_OPERATIONS", 30'000 / kOneIn);
  for (const std::uint64_t segment_bytes : segment_sizes()) {
    for (const Duration sync : {Duration{}, Duration{50ms}, Duration::max()}) {
      for (const std::size_t jobs : {10U, 1000U, 20'000U}) {
        for (const std::uint64_t disk_speed : {1U, 20U}) {
          CAPTURE(segment_bytes);
          CAPTURE(name_of(sync));
          CAPTURE(jobs);
          CAPTURE(disk_speed);
          BusyLife life({.sync = sync, .segment_bytes = segment_bytes}, jobs, disk_speed);
          life.run(is_soak ? commands / 6 : commands);
          if (is_soak) {
            fmt::print(
                "segment {:8} sync {:8} jobs {:4} disk {:2}: 2 x live + {:.3f} segments, "
                "ratio {:.3f}, {} of {} moments beyond\n",
                segment_bytes, name_of(sync), jobs, disk_speed, life.worst_segments(),
                life.worst_ratio(), life.moments_beyond(), life.moments());
            std::fflush(stdout);
          }
          CHECK(life.worst_segments() <= (segment_bytes < 64 << 10 ? 5 : 3));
        }
      }
    }
  }
}

TEST_CASE("the files stay near the bound if reservations are recorded") {
  for (const std::uint64_t segment_bytes : {4104U, 16U << 10, 64U << 10, 1U << 20}) {
    for (const std::size_t jobs : {10U, 1000U, 10'000U}) {
      CAPTURE(segment_bytes);
      CAPTURE(jobs);
      BusyLife life({.sync = Duration{50ms}, .segment_bytes = segment_bytes, .reservations = true},
                    jobs, 20);
      life.run(number_from("TUBED_SPACE_OPERATIONS", 60'000 / kOneIn));
      CAPTURE(life.worst_segments());
      CHECK(life.worst_segments() <= (segment_bytes < 64 << 10 ? 5 : 3));
    }
  }
}

TEST_CASE("a journal that holds commands back resumes by itself, and stops") {
  for (const std::uint64_t segment_bytes : {16U << 10, 64U << 10}) {
    for (const Duration sync : {Duration{}, Duration{50ms}, Duration::max()}) {
      CAPTURE(segment_bytes);
      CAPTURE(name_of(sync));
      BusyLife life({.sync = sync, .segment_bytes = segment_bytes}, 1000, 1);
      for (int round = 0; round < 5; ++round) {
        life.run_until_held_back();
        if (round % 2 == 1) life.step_clock();
        CHECK(life.becomes_free());
      }
      life.run_until_held_back();
      life.step_clock();
      CHECK(life.closes());
      CHECK(life.starts_again());
    }
  }
}

// As when a tube is flushed or jobs expire: the removals do not wait for the journal.
TEST_CASE("commands do not wait until all files of jobs that died at once are removed") {
  constexpr std::uint64_t kSegmentBytes = 64 << 10;
  for (const Duration sync : {Duration{}, Duration{50ms}, Duration::max()}) {
    CAPTURE(name_of(sync));
    TestDisk disk;
    const auto queue = opened(disk, {.sync = sync, .segment_bytes = kSegmentBytes});
    std::vector<JobId> jobs;
    for (int i = 0; i < 4000; ++i) {
      jobs.push_back(queue->put(2000));
      if (i % 20 == 0) queue->settle();
    }
    queue->settle();
    for (const JobId id : jobs) {
      if (id % 100 != 0) queue->remove(id);
    }
    const Journal& journal = queue->journal();
    int steps = 0;
    for (; journal.congested() && steps < 100'000; ++steps) {
      queue->journal().flush();
      disk.run_one();
    }
    CHECK(steps > 0);
    const LogStats counts = journal.stats();
    CHECK(counts.file_bytes > 2 * counts.live_bytes + 20 * kSegmentBytes);
    // The next writes use the space that was allocated ahead.
    for (int i = 0; i < 1000; ++i) {
      queue->remove(queue->put(2000));
      queue->settle();
    }
    const LogStats after = journal.stats();
    CHECK(after.file_bytes <= 2 * after.live_bytes + 3 * kSegmentBytes);
  }
}

TEST_CASE("no put is refused at journal.max_bytes while half of the journal is dead") {
  struct Size {
    std::uint64_t segment_bytes;
    std::uint64_t segments;
  };
  std::uint64_t refused = 0;
  for (const Size size :
       {Size{16 << 10, 6}, {16 << 10, 20}, {64 << 10, 6}, {64 << 10, 20}, {256 << 10, 6}}) {
    for (const Duration sync : {Duration{}, Duration{50ms}, Duration::max()}) {
      for (const std::uint64_t disk_speed : {1U, 20U}) {
        CAPTURE(size.segment_bytes);
        CAPTURE(size.segments);
        CAPTURE(name_of(sync));
        CAPTURE(disk_speed);
        const std::uint64_t max_bytes = size.segments * size.segment_bytes;
        // More jobs than max_bytes can hold.
        BusyLife life({.sync = sync, .segment_bytes = size.segment_bytes, .max_bytes = max_bytes},
                      max_bytes / std::min<std::uint64_t>(size.segment_bytes / 64, 700),
                      disk_speed);
        life.run(number_from("TUBED_SPACE_OPERATIONS", 60'000 / kOneIn));
        if (std::getenv("TUBED_SPACE_OPERATIONS") != nullptr) {
          fmt::print(
              "segment {:7} sync {:8} max {:3} segments disk {:2}: {} refused, at most "
              "{:.3f} segments left\n",
              size.segment_bytes, name_of(sync), size.segments, disk_speed, life.refused(),
              life.most_left_segments());
        }
        refused += life.refused();
        CHECK(life.most_left_segments() <= 3);
      }
    }
  }
  CHECK(refused > 10'000 / kOneIn);
}
