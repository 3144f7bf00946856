// History: the states that something had. A loss of power may restore an earlier state.
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
  // Forgets the states that others had replaced by then.
  void forget_until(Time time) {
    while (states_.size() > 1 && states_[1].first <= time) states_.pop_front();
  }
  // The newest, or the oldest, state that fits(state) accepts; null: none.
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

// The changes that a start of the process may have lost.
struct Losses {
  bool may_be = false;
  Time safe_until = {};  // changes that were acknowledged by then hold
};

}  // namespace tubed::simulation
