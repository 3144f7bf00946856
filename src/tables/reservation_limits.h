// ReservationLimits: how many jobs a tube gives, by its policy: how many clients hold at once, and
// the rate.
#pragma once

#include <cstdint>

#include "tables/deadline_index.h"
#include "tables/job.h"
#include "tables/serve_queue.h"
#include "tables/tube_table.h"

namespace tubed::engine {

class ReservationLimits {
 public:
  // All of them outlive it.
  ReservationLimits(TubeTable& tubes, DeadlineIndex& deadlines, ServeQueue& serve_queue)
      : tubes_(tubes), deadlines_(deadlines), serve_queue_(serve_queue) {}

  // The policy of the tube, which may be none, is new. O(log n).
  [[gnu::cold]] void apply(Tube* tube, const Policy* policy);
  // The tube has given a job. Precondition: it has a policy. O(log n).
  [[gnu::cold]] void count(Time now, Tube* tube);
  // The number of its reserved jobs has changed in another way. The same precondition. O(log n).
  [[gnu::cold]] void recount(Tube* tube);
  // Up to `budget` tubes whose rate allows a job again give jobs. O(log n) for each.
  void end_rates(Time now, std::uint32_t budget);

 private:
  TubeTable& tubes_;
  DeadlineIndex& deadlines_;
  ServeQueue& serve_queue_;
};

}  // namespace tubed::engine
