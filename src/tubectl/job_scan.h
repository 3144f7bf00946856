// A scan: all jobs of a server, by looking at one id after the other. It changes no job.
#pragma once

#include <functional>
#include <variant>
#include <vector>

#include "base/result.h"
#include "tubectl/client.h"
#include "tubectl/job_record.h"

namespace tubed::tubectl {

// The id that a put gets now: all jobs that are there have a smaller one. To learn it, a job with a
// long delay is put into the tube tubectl-export and deleted at once. An Answer: the server
// refused.
Result<std::variant<JobId, Answer>> next_id(Client& client);
// Tells that it refused, and returns the exit code.
int no_next_id(const Answer& refusal);

// Looks at the ids from `from` to `to`, both included, some thousand at a time, and gives visit()
// the jobs that are there, by id, without their bodies. visit() returns false to end it. O(ids).
Result<void> scan_jobs(
    Client& client, JobId from, JobId to,
    const std::function<Result<bool>(std::vector<JobRecord> jobs, JobId seen)>& visit);

}  // namespace tubed::tubectl
