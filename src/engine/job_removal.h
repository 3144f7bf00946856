// JobRemoval: how a job ends that was not flushed with its tube.
//
// Its memory and its tags are free, and `Removed` is emitted. A job that a client deletes leaves
// the cooldown of its unique key, if that has one.
#pragma once

#include "engine/job_moves.h"
#include "engine/tags.h"
#include "engine/tube_registry.h"
#include "facts/fact.h"
#include "tables/job.h"
#include "tables/job_memory.h"
#include "tables/job_table.h"
#include "tables/tube_metrics.h"
#include "tables/unique_keys.h"

namespace tubed::engine {

class JobRemoval {
 public:
  // All of them outlive it.
  JobRemoval(JobTable& jobs, JobMoves& moves, JobMemory& memory, Tags& tags,
             UniqueKeys& unique_keys, TubeRegistry& registry)
      : jobs_(jobs),
        moves_(moves),
        memory_(memory),
        tags_(tags),
        unique_keys_(unique_keys),
        registry_(registry) {}

  // A client deletes the job: it counts as deleted, and its tube goes with it if nothing needs it.
  // O(log n).
  [[gnu::always_inline]] void remove(Time now, Job* job, FactSink& out) {
    Tube* tube = job->tube;
    count_deleted(*tube, 1);
    if (job->tags() != nullptr) [[unlikely]] {
      erase_with_cooldown(now, job, out);
    } else {
      erase_untagged(job, out);
    }
    registry_.remove_if_unwanted(now, tube);
  }
  // It ends without counting, and its key is free at once. Its tube stays. O(log n).
  void erase(Job* job, FactSink& out) {
    if (job->tags() != nullptr) [[unlikely]]
      tags_.free(*job);
    erase_untagged(job, out);
  }
  // The same, with the cooldown of its key. Precondition: it has tags.
  [[gnu::cold]] void erase_with_cooldown(Time now, Job* job, FactSink& out);
  // A client gives back a job whose tube was truncated meanwhile. O(log n).
  [[gnu::cold]] void drop_truncated(Time now, Job* job, FactSink& out);

  // Counts jobs of the tube as deleted. O(1).
  static void count_deleted(Tube& tube, std::uint64_t jobs) {
    tube.delete_count += jobs;
    tube.metrics->delete_count += jobs;
  }

 private:
  // Or its tags are free already.
  [[gnu::always_inline]] void erase_untagged(Job* job, FactSink& out) {
    const JobId id = job->id;
    moves_.detach(job);
    memory_.give_back(job->body.size());
    jobs_.remove(id);
    out.fact(Removed{.id = id});
  }

  JobTable& jobs_;
  JobMoves& moves_;
  JobMemory& memory_;
  Tags& tags_;
  UniqueKeys& unique_keys_;
  TubeRegistry& registry_;
};

}  // namespace tubed::engine
