// JobMoves: how a job moves. Its state and the place where it is linked change together.
//
// Every command that changes a job calls detach(), which takes the job out of its heap or list and
// uncounts its state, and then one of attach_ready(), attach_delayed(), attach_held(),
// attach_buried() and attach_reserved(). These link it into its new place, count the new state, and
// update what depends on the tube's or holder's first job (DeadlineIndex, the set of giving tubes).
// Between the two the job is in no place, and its tube, priority and delay may change.
//
// A job that becomes ready is not given away at once: the caller pushes its tube into the
// ServeQueue, and serves the sessions that wait when its own change is complete.
#pragma once

#include <cstdint>

#include "facts/fact.h"
#include "facts/info.h"
#include "tables/concurrency_keys.h"
#include "tables/deadline_index.h"
#include "tables/flushed_jobs.h"
#include "tables/groups.h"
#include "tables/job.h"
#include "tables/reservation_limits.h"
#include "tables/serve_queue.h"
#include "tables/tube_table.h"
#include "tables/unique_keys.h"

namespace tubed::engine {

class JobMoves {
 public:
  // All of them outlive it. While `extended` is false, no job has a life, a concurrency key or
  // groups, and no tube has a policy.
  JobMoves(TubeTable& tubes, DeadlineIndex& deadlines, ServeQueue& serve_queue,
           ConcurrencyKeys& concurrency_keys, Groups& groups, UniqueKeys& unique_keys,
           ReservationLimits& reservation_limits, std::uint64_t& entries_walked,
           const bool& extended)
      : tubes_(tubes),
        deadlines_(deadlines),
        serve_queue_(serve_queue),
        concurrency_keys_(concurrency_keys),
        groups_(groups),
        unique_keys_(unique_keys),
        reservation_limits_(reservation_limits),
        entries_walked_(entries_walked),
        extended_(extended) {}

  // How many jobs are in each state, without flushed jobs.
  const StateCounts& counts() const { return counts_; }

  // Each is O(log n), except as stated; a change of the room of a concurrency key costs more
  // (tables/concurrency_keys.h).

  // Takes the job out of its place.
  void detach(Job* job);
  // Makes the job ready, without pushing its tube into the serve queue.
  void attach_ready(Job* job);
  // Delays the job until that time.
  void attach_delayed(Job* job, Time until);
  // Delays the job without an end. Precondition: it waits for a group.
  void attach_held(Job* job);
  // Buries the job, as the last of the buried jobs of its tube. O(1).
  void attach_buried(Job* job) { attach_buried(job, next_bury_order_); }
  // Buries the job in the place that `order` gives it among them. If that is not the last, the job
  // is there after the next order_buried(). O(1).
  void attach_buried(Job* job, std::uint64_t order);
  // Gives the job to the session, from now until its TTR ends.
  void attach_reserved(Session& holder, Time now, Job* job);
  // Gives the job to the session of the past. The statistics and the rate of its tube do not count
  // this reservation again.
  [[gnu::cold]] void attach_to_past(Session& past, Time now, Job* job, Time until);

  // Changes the tube of a job that is detached. True: its unique key has moved with it. O(log
  // keys).
  [[gnu::cold]] bool enter_tube(Time now, Job& job, Tube* to, FactSink& out);

  // Makes the job ready from any place, and pushes its tube into the serve queue.
  void make_ready(Job* job);
  // Holds a job that was put if the group that it waits for has members.
  [[gnu::cold]] void wait_for_group(Job* job);
  // The delay of a job that waits for a group has ended. The fact that began the delay does not say
  // whether the job is held then.
  [[gnu::cold]] void end_delay_of_waiting(Job* job);

  // The place of the job that is buried next.
  std::uint64_t next_bury_order() const { return next_bury_order_; }
  // True if a replay has buried jobs out of the order of their places.
  bool is_in_disorder() const { return buried_in_disorder_; }
  // Puts them into their order. O(n log n) for the buried jobs of the tubes where it is not.
  [[gnu::cold]] void order_buried();

  // Step 1 of a flush (tables/flushed_jobs.h), for the jobs of the tube that are not reserved.
  // O(1).
  [[gnu::cold]] FlushedBatch take_jobs_at_rest(Tube* tube);
  // The same for all jobs of the tube: the batch lists the reserved jobs after those that were
  // buried, as if they were buried too. O(reserved log n).
  [[gnu::cold]] FlushedBatch take_all_jobs(Tube* tube);

 private:
  template <JobState kState, int kBy>
  void count_state(const Job& job);
  [[gnu::cold]] void attach_ready_with_tags(Job* job);
  void link_reserved(Session& holder, Time now, Job* job, Time deadline);

  TubeTable& tubes_;
  DeadlineIndex& deadlines_;
  ServeQueue& serve_queue_;
  ConcurrencyKeys& concurrency_keys_;
  Groups& groups_;
  UniqueKeys& unique_keys_;
  ReservationLimits& reservation_limits_;
  std::uint64_t& entries_walked_;
  const bool& extended_;
  StateCounts counts_;
  std::uint64_t next_bury_order_ = 0;
  bool buried_in_disorder_ = false;  // in at least one tube
};

}  // namespace tubed::engine
