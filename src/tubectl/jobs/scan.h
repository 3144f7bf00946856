// A scan: all jobs of a server, by looking at one id after the other. It changes no job.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "client/connection.h"
#include "tubectl/jobs/record.h"

namespace tubed::tubectl {

// The last id to look at: `to`, or else the one that a put gets now, for all jobs that are there
// have a smaller one. To learn it, a job with a long delay is put into the tube tubectl-export and
// deleted at once. Nothing: the server refused, and that is told.
Result<std::optional<JobId>> last_id(client::Connection& connection, std::optional<JobId> to);

// Looks at the ids from `from` to `to`, both included, some thousand at a time, and gives visit()
// the jobs that are there, by id, without their bodies. visit() returns false to end it. O(ids).
Result<void> scan_jobs(
    client::Connection& connection, JobId from, JobId to,
    const std::function<Result<bool>(std::vector<JobRecord> jobs, JobId seen)>& visit);

}  // namespace tubed::tubectl
