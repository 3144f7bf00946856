// Clock: the time of the queue in test mode.
//
// The time of the queue is apart from the monotonic clock: a held clock moves only when it is set,
// a running clock also with the monotonic clock. Replies give it in milliseconds since its
// beginning.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace tubed::test_mode {

enum class ClockMode : std::uint8_t {
  manual,     // moves when a test verb says so
  automatic,  // also to the next deadline while every client waits in a reserve
  real,       // also with the monotonic clock
};

class Clock {
 public:
  // It begins at `begin` when the monotonic clock is at `tick`.
  Clock(ClockMode mode, Time begin, Time tick) : mode_(mode), begin_(begin) { set(begin, tick); }

  ClockMode mode() const { return mode_; }
  Time begin() const { return begin_; }
  // The time of the queue at the time `tick` of the monotonic clock.
  Time at(Time tick) const { return mode_ == ClockMode::real ? tick + offset_ : held_; }
  void set(Time now, Time tick) {
    held_ = now;
    offset_ = now - tick;
  }
  // The time of the monotonic clock at which the queue reaches `deadline`; kNever: not by itself.
  Time tick_of(Time deadline, Time tick) const {
    if (deadline <= at(tick)) return tick;
    return mode_ != ClockMode::real || deadline == kNever ? kNever : deadline - offset_;
  }
  // Whole milliseconds since the beginning.
  std::uint64_t milliseconds(Time now) const {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now - begin_).count());
  }

 private:
  ClockMode mode_;
  Time begin_;
  Time held_;
  Duration offset_{};
};

}  // namespace tubed::test_mode
