// JobSource: the jobs of one tube in one state, in batches, for callers that remove them.
//
// It reserves ready jobs, so that no worker gets them meanwhile. It finds the jobs that a reserve
// does not return (of a paused tube, delayed, buried) near the job that peek shows first, because
// jobs that were put together have near ids. It never returns a job of another tube or state, but
// only a reserved job cannot change meanwhile. It deletes nothing.
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

// Used for one tube and state: made, called until next() returns no jobs, and destroyed. It does
// not own the connection. Memory: one batch.
class JobSource {
 public:
  // With `ids`, only the id, tube and state of a record are filled in.
  enum class Wanted : std::uint8_t { ids, records };

  // `client` is changed in what it uses and watches. Precondition: `state` is not reserved.
  JobSource(client::Connection& connection, std::string tube, JobState state, Wanted wanted);

  // Some jobs, `most` at most and about 4 MiB of bodies; none: there are no more, or the server
  // refuses the tube. Precondition: the client has deleted or released the jobs of the last call.
  Result<std::vector<JobRecord>> next(std::uint64_t most);
  // The reply with which the server refused; with an empty line, it did not refuse.
  const client::Reply& refusal() const { return refusal_; }
  // Those of the last call are reserved by the client.
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
  std::size_t batch_;  // jobs that fit into what is held in memory
  // How many ids on each side are examined. The numbers grow where jobs are found.
  std::size_t below_ = 32;
  std::size_t above_ = 32;
};

// Asks for the body of each of those jobs and gives each that is still there to visit(), one after
// the other. Pipelined.
Result<void> for_each_body(client::Connection& connection, std::vector<JobRecord>& jobs,
                           const std::function<void(JobRecord& job)>& visit);
// Deletes them, pipelined; says of each whether it was there and not another client's.
Result<std::vector<bool>> delete_jobs(client::Connection& connection,
                                      std::span<const JobRecord> jobs);
// Touches the jobs, pipelined. Returns for each whether the client still holds it.
Result<std::vector<bool>> touch_jobs(client::Connection& connection,
                                     std::span<const JobRecord> jobs);

// --- Jobs that a group holds, which no JobSource returns

// Those of the tube, by id, with their id, tube and state only. Precondition: the server has
// list-jobs. If it refuses, `refusal` is its reply. Memory: one record for each.
Result<std::vector<JobRecord>> held_jobs(client::Connection& connection, const std::string& tube,
                                         client::Reply& refusal);

// --- Scanning all ids

// The last id to examine: `to`, or else the id that a put gets now, because all existing jobs have
// smaller ids. To find it, the function puts a job with a long delay into the tube tubectl-export
// and deletes it at once. Nothing: the server refused, and the reason was printed.
Result<std::optional<JobId>> last_id(client::Connection& connection, std::optional<JobId> to);

// Looks at the ids from `from` to `to`, both included, some thousand at a time, and gives visit()
// the jobs that are there, by id, without their bodies. visit() returns false to end it. O(ids).
Result<void> scan_jobs(
    client::Connection& connection, JobId from, JobId to,
    const std::function<Result<bool>(std::vector<JobRecord> jobs, JobId seen)>& visit);

}  // namespace tubed::tubectl
