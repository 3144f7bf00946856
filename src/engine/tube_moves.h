// TubeMoves: moves jobs to other tubes, and changes where they rest.
//
// A job that moves keeps its id, its age and its counters, and comes before younger jobs of its
// priority. The facts are `Placed`, if the job rests in another place or has other marks, and then
// `Moved`, if its tube is another; both are one unit. So a buried job is already the last of the
// buried when it moves.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/dispatcher.h"
#include "engine/requests.h"

namespace tubed::engine {

class TubeMoves {
 public:
  // They outlive it.
  TubeMoves(Parts& parts, Dispatcher& dispatcher) : parts_(parts), dispatcher_(dispatcher) {}

  // Moves a job to the tube, which is created if necessary and may be its own. It stays ready,
  // delayed or buried, unless a place is given; a job that the session holds becomes ready. A job
  // that another session holds is not found. O(log n + log tubes). [extension: move-job]
  [[gnu::cold]] MoveResult move(SessionId session, Time now, JobId id, std::string_view tube,
                                const std::optional<NewPlace>& place, Output& out);
  // Moves up to work_per_turn jobs to that tube, none to their own, and returns how many. move.left
  // is the number still to move. Returns no value if the first job could not move because the tube
  // would be one too many or is full. [extension: move-jobs]
  [[gnu::cold]] std::optional<std::uint32_t> move_slice(Time now, Slices& move,
                                                        std::string_view tube, Output& out);
  // Returns no value if no such job exists, false if a session holds it. O(log n).
  // [extension: reprioritize]
  [[gnu::cold]] std::optional<bool> reprioritize(JobId id, Priority priority, Output& out);
  // The same for a job in any state; durably also for a reserved job. O(log n).
  [[gnu::cold]] void set_priority(Job& job, Priority priority, Output& out);

 private:
  void move_to(Time now, Job* job, Tube* to, const std::optional<NewPlace>& place, Output& out);

  Parts& parts_;
  Dispatcher& dispatcher_;
};

}  // namespace tubed::engine
