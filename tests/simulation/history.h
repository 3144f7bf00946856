// History: past states of an object. A loss of power may restore an earlier state.
#pragma once

#include <deque>
#include <utility>

#include "base/time.h"

namespace tubed::simulation {

template <class State>
class History {
 public:
  // Forgets all other states.
  void begin(Time now, const State& state) {
    states_.clear();
    add(now, state);
  }
  void add(Time now, const State& state) { states_.emplace_back(now, state); }
  // Forgets states that had been replaced by `time`.
  void forget_until(Time time) {
    while (states_.size() > 1 && states_[1].first <= time) states_.pop_front();
  }
  // Return the newest or the oldest state that fits(state) accepts, or null.
  template <class Fits>
  const State* newest(const Fits& fits) const {
    for (auto entry = states_.rbegin(); entry != states_.rend(); ++entry) {
      if (fits(entry->second)) return &entry->second;
    }
    return nullptr;
  }
  template <class Fits>
  const State* oldest(const Fits& fits) const {
    for (const auto& [time, state] : states_) {
      if (fits(state)) return &state;
    }
    return nullptr;
  }

 private:
  std::deque<std::pair<Time, State>> states_;
};

// Changes that may have been lost at a start of the process.
struct Losses {
  bool may_be = false;
  Time safe_until = {};  // changes acknowledged by then are kept
};

}  // namespace tubed::simulation
