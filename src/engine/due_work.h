// DueWork: the work of time, in the steps of tables/deadline_index.h.
//
// Each loop asks the DeadlineIndex for the next due tube or session, does one unit of work, which
// changes the index, and asks again, until nothing is due or work_per_turn is used up.
#pragma once

#include <cstdint>

#include "engine/dispatcher.h"

namespace tubed::engine {

class DueWork {
 public:
  // They outlive it.
  DueWork(Parts& parts, Dispatcher& dispatcher) : parts_(parts), dispatcher_(dispatcher) {}

  // The number of reservations whose TTR has passed.
  std::uint64_t timeouts() const { return timeouts_; }
  Deadlines next() const;
  // Does the work that is due at or before now.
  void advance(Time now, Output& out);
  // Makes up to work_per_turn jobs of closed sessions ready.
  void continue_closing(Time now, Output& out);

 private:
  [[gnu::cold]] void add_rules(Deadlines& next) const;
  // Work that earlier calls have left to advance().
  bool has_unfinished() const;
  bool makes_ready(Time now) const;
  void end_reservations(Time now, Output& out);
  void end_delays(Time now, Output& out);
  void end_pauses(Time now);
  void end_waits(Time now, Output& out);
  void give_back(Time now, Job* job, Output& out);

  Parts& parts_;
  Dispatcher& dispatcher_;
  std::uint64_t timeouts_ = 0;
};

}  // namespace tubed::engine
