// Flushes: how the jobs of a tube go at once, in the steps of engine/flushed_jobs.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "engine/fact.h"
#include "engine/flushed_jobs.h"
#include "engine/groups.h"
#include "engine/job.h"
#include "engine/job_memory.h"
#include "engine/job_moves.h"
#include "engine/job_table.h"
#include "engine/tag_records.h"
#include "engine/tags.h"
#include "engine/tube_registry.h"
#include "engine/tube_table.h"
#include "engine/unique_keys.h"

namespace tubed::engine {

class Flushes {
 public:
  // All of them outlive it.
  Flushes(JobTable& jobs, TubeTable& tubes, FlushedJobs& flushed, JobMemory& memory,
          TagRecords& tag_records, UniqueKeys& unique_keys, Groups& groups, TubeRegistry& registry,
          JobMoves& moves, Tags& tags)
      : jobs_(jobs),
        tubes_(tubes),
        flushed_(flushed),
        memory_(memory),
        tag_records_(tag_records),
        unique_keys_(unique_keys),
        groups_(groups),
        registry_(registry),
        moves_(moves),
        tags_(tags) {}

  // Takes all jobs of the tube, also from the sessions that hold them, and returns how many; its
  // unique keys are free. No such tube: 0. O(reserved jobs of the tube).
  std::uint64_t flush(Time now, std::string_view tube, FactSink& out);
  // The same, but reserved jobs stay with their holders, and only the others are counted. No value:
  // no such tube. O(reserved jobs of the tube).
  std::optional<std::uint64_t> truncate(Time now, std::string_view tube, FactSink& out);

  // True: remove_next() has something to do. O(1).
  bool has_next(Time now) const { return !flushed_.empty() || unique_keys_.has_next(now); }
  // Frees a flushed job, a flushed key or a cooldown that has ended, and emits the fact of it.
  // Precondition: has_next(). O(log keys).
  void remove_next(FactSink& log);

  // For a replay: the jobs of a flush, and one of them, which was removed.
  void add(FlushedBatch batch);
  void forget(Job* job);

 private:
  void limit(const Tube& tube, FactSink& out);
  void finish(Time now, FlushedBatch batch, std::uint64_t count, FactSink& out);
  void remove_job(FactSink& out);

  JobTable& jobs_;
  TubeTable& tubes_;
  FlushedJobs& flushed_;
  JobMemory& memory_;
  TagRecords& tag_records_;
  UniqueKeys& unique_keys_;
  Groups& groups_;
  TubeRegistry& registry_;
  JobMoves& moves_;
  Tags& tags_;
};

}  // namespace tubed::engine
