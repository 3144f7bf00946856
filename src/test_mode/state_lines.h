// The state of a server as lines of JSON, for test-dump, test-load and --preload.
//
// Each line is an object. The first has the clock; then comes one line for each tube, each value of
// a policy that a client has set, each connection and each job. A job has the line of tubectl
// export (json/job_record.h), with more keys at its end: `holder`, `time_left_ms`, the marks of the
// job and `held`. test-load reads it, without `holder` and `held`, the lines of policies, and the
// pause in a tube's line, and skips the others. A line without the marks or a dump without policies
// is loaded as well.
//
// The marks (JobMarks) are written where they are set: `reserves_before`, `timeouts_before` and
// `releases_before`, the counters when the present attempts began; `dead_from` and `dead_reason`;
// `after_done`, true for a job that no longer waits for its group.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "commands/service.h"

namespace tubed::test_mode {

// O(jobs + tubes + connections and what they watch).
std::string dump(const commands::Service& service, std::uint64_t clock_milliseconds);

// Adds the jobs, policies and pauses to the queue, and returns the number of jobs. A job keeps its
// id if no job has had an id as high, else it gets the next id; a reserved job becomes ready. A
// job that waits for a group with members is held. A tube that has neither a job nor a client is
// not paused. Every line is read before anything changes. The error names the line; its kind is
// `no_space` if the memory for jobs or the bound of policies does not suffice.
Result<std::uint64_t> load(std::string_view lines, commands::Service& service);

}  // namespace tubed::test_mode
