// World: the time, the pending events and the story of a simulated life.
//
// A process has at most one world. The replaced functions of os/ and of libuv find it through
// current(), because they have no parameter for it.
//
// Virtual time advances to the next event, and by the fixed costs passed to pass(). Computation is
// free, so a life does not depend on the machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace tubed::simulation {

class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Precondition: a world exists.
  static World& current();
  static bool exists();

  std::uint64_t seed() const { return seed_; }

  // --- Time
  Time now() const { return now_; }
  // The wall clock minus the monotonic clock. It may be stepped.
  Duration wall_offset() const { return wall_offset_; }
  void step_wall_clock(Duration by) { wall_offset_ += by; }
  void pass(Duration price) { now_ += price; }
  // No effect if the time has passed.
  void pass_to(Time time) { now_ = std::max(now_, time); }
  // Returns the first moment of a grid after `soon`. Clients act on the grid, so bytes from several
  // of them arrive in one tick.
  Time grid_after(Duration soon) const {
    constexpr Duration kGrid = std::chrono::microseconds(250);
    return Time(((now_ + soon).time_since_epoch() / kGrid + 1) * kGrid);
  }

  // --- Events
  // Events of one moment happen in the order in which they were planned.
  void at(Time time, std::function<void()> happen) {
    events_.emplace(std::max(time, now_), std::move(happen));
  }
  void after(Duration duration, std::function<void()> happen) {
    at(now_ + duration, std::move(happen));
  }
  // Runs the events that are due. Returns whether any was due.
  bool run_due();
  // Returns the time of the next event; kNever without events.
  Time next() const { return events_.empty() ? kNever : events_.begin()->first; }
  std::uint64_t events() const { return count_; }
  // Makes more than `most` events a problem.
  void limit_events(std::uint64_t most) { most_ = most; }
  // Also stores the number of events at `place`.
  void count_events_at(std::uint64_t* place) { place_ = place; }

  // --- The story
  // Adds a line to the story and to the digest.
  void note(std::string_view what);
  // Makes the first line with this text a problem.
  void stop_at(std::string text) { stop_at_ = std::move(text); }
  // A hash of all lines and their times. Equal for equal lives.
  std::uint64_t digest() const { return digest_; }
  const std::deque<std::string>& story() const { return story_; }
  void print_story(bool printed) { prints_ = printed; }

  // The first problem ends the life.
  void fail(std::string_view what);
  bool failed() const { return !problem_.empty(); }
  const std::string& problem() const { return problem_; }

 private:
  const std::uint64_t seed_;
  Time now_{std::chrono::hours(1)};
  Duration wall_offset_{std::chrono::hours(500'000)};
  std::multimap<Time, std::function<void()>> events_;
  std::uint64_t count_ = 0;
  std::uint64_t most_ = UINT64_MAX;
  std::uint64_t* place_ = &count_;
  std::uint64_t digest_ = 0xcbf29ce484222325;
  std::deque<std::string> story_;
  std::string stop_at_;
  std::string problem_;
  bool prints_ = false;
};

}  // namespace tubed::simulation
