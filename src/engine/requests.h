// The requests to the engine and its results, as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "facts/types.h"
#include "tables/tube_table.h"

namespace tubed::engine {

// The parameters of a put. A TTR of 0 becomes 1.
struct PutRequest {
  Priority priority = 0;
  TimeSpan delay;
  Seconds ttr;  // JobTags may have its milliseconds
  Bytes body;
};

// The result of a put with tags: the new job, or the job that has its unique key.
struct PutResult {
  JobId id = 0;
  bool added = true;
  // If not added:
  std::optional<JobState> state;       // of the job; no value: it was deleted
  std::optional<Priority> lowered_to;  // the new priority of the job, from the put
};

// How long a session may wait; 0: not at all.
struct Wait {
  Duration limit = kForever;
  static constexpr Duration kForever = Duration::max();
};

// A job as peek and reserve-job show it.
struct JobBody {
  JobId id = 0;
  Bytes body;
};

// Work on the jobs of one tube and state that is done in slices.
struct Slices {
  TubeRef tube;
  JobState state = JobState::ready;
  std::uint64_t left = 0;  // jobs; 0: done
};

// Where a job that is moved rests then.
struct NewPlace {
  Priority priority = 0;
  TimeSpan delay;  // 0: ready
};
enum class MoveResult : std::uint8_t { moved, not_found, too_many_tubes, tube_full };

// A page of a list of jobs.
struct JobPage {
  std::vector<JobId> jobs;
  JobId next = 0;  // where the next page begins; 0: this is the last
};

// A page of a filtered list of jobs.
struct FoundJobs : JobPage {
  std::uint64_t looked = 0;  // at this number of jobs, with those of the page
};

}  // namespace tubed::engine
