// JobSource: the jobs of one tube in one state, in batches, for callers that remove them.
//
// It reserves ready jobs to keep workers from getting them. It finds the jobs that a reserve does
// not return (of a paused tube, delayed, buried) near the job that peek shows first, because jobs
// that were put together have near ids. It never returns a job of another tube or state, but only a
// reserved job cannot change meanwhile. It deletes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/connection.h"
#include "tubectl/jobs/record.h"

namespace tubed::tubectl {

// Used for one tube and state: call next() until it returns no jobs. Does not own the connection.
// Memory: one batch.
class JobSource {
 public:
  // With `ids`, only the id, tube and state of a record are set.
  enum class Wanted : std::uint8_t { ids, records };

  // Changes the tubes that the connection uses and watches. Precondition: `state` is not reserved.
  JobSource(client::Connection& connection, std::string tube, JobState state, Wanted wanted);

  // Returns at most `most` jobs, with about 4 MiB of bodies; no jobs at the end, or if the server
  // refuses the tube. Precondition: the client has deleted or released the jobs of the last call.
  Result<std::vector<JobRecord>> next(std::uint64_t most);
  // The reply with which the server refused; its line is empty if the server did not refuse.
  const client::Reply& refusal() const { return refusal_; }
  // True if the client has reserved the jobs of the last call.
  bool held() const { return reserves_; }

 private:
  Result<void> begin();
  Result<std::vector<JobRecord>> reserve(std::size_t most);
  Result<std::vector<JobRecord>> look_around(std::size_t most);
  Result<std::vector<JobRecord>> matching_near(JobId id, std::size_t most);
  void learn_sizes(const std::vector<JobRecord>& jobs);

  client::Connection& connection_;
  std::string tube_;
  JobState state_;
  Wanted wanted_;
  bool begun_ = false;
  client::Reply refusal_;
  bool reserves_;
  std::size_t batch_;  // jobs per batch, for about kBatchBytes
  // The number of ids examined on each side. It grows where jobs are found.
  std::size_t below_ = 32;
  std::size_t above_ = 32;
};

// Requests the body of each job, pipelined, and calls visit() for each job that still exists, in
// order.
Result<void> for_each_body(client::Connection& connection, std::vector<JobRecord>& jobs,
                           const std::function<void(JobRecord& job)>& visit);
// The jobs with these ids that exist, in their order, without their bodies; pipelined.
Result<std::vector<JobRecord>> describe_ids(client::Connection& connection,
                                            std::span<const JobId> ids);
// Deletes the jobs, pipelined. Returns for each whether it existed and was not held by another
// client.
Result<std::vector<bool>> delete_jobs(client::Connection& connection,
                                      std::span<const JobRecord> jobs);
// Touches the jobs, pipelined. Returns for each whether the client still holds it.
Result<std::vector<bool>> touch_jobs(client::Connection& connection,
                                     std::span<const JobRecord> jobs);

// Returns the jobs of the tube that a group holds (no JobSource returns these), ordered by id, with
// id, tube and state only. Precondition: the server has list-jobs. If it refuses, `refusal` is its
// reply. Memory: one record for each.
Result<std::vector<JobRecord>> held_jobs(client::Connection& connection, const std::string& tube,
                                         client::Reply& refusal);

// The last id to examine: `to`, or else the id that a put gets now, because all existing jobs have
// smaller ids. To find it, the function puts a job with a long delay into the tube tubectl-export
// and deletes it immediately. No value: the server refused, and the reason was printed.
Result<std::optional<JobId>> last_id(client::Connection& connection, std::optional<JobId> to);

// Examines the ids from `from` to `to` inclusive, some thousand at a time, and calls visit() with
// the jobs that exist, ordered by id, without their bodies. visit() returns false to end the scan.
// O(ids).
Result<void> scan_jobs(
    client::Connection& connection, JobId from, JobId to,
    const std::function<Result<bool>(std::vector<JobRecord> jobs, JobId seen)>& visit);

}  // namespace tubed::tubectl
