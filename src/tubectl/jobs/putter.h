// JobPutter: puts jobs into their tubes, in their state, many at a time.
//
// The tags of a job are put if the server knows them; else they are left out, with a warning. A job
// whose unique key another job has is refused.
//
// A buried job is put with a long delay, then reserved by its id and buried: no worker can get it
// in between. A reserved one becomes ready. The client watches the tubes that are put into, so that
// they stay there until the last put; it never reserves from them.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/connection.h"
#include "tubectl/jobs/record.h"

namespace tubed::tubectl {

// The result of putting a job.
struct PutResult {
  JobId id = 0;           // the new id; 0: the job was refused and does not exist
  client::Reply refusal;  // the server's reply
};

// Does not own the connection. The tubes stay watched until the connection closes; above 1000 tubes
// the earlier tubes are released first.
class JobPutter {
 public:
  // Precondition: no other code changes which tubes the connection uses and watches.
  explicit JobPutter(client::Connection& connection) : connection_(connection) {}

  // Puts the jobs in this order; one result for each. The jobs after a refused job are put all the
  // same.
  Result<std::vector<PutResult>> put(std::span<const JobRecord> jobs);

 private:
  Result<void> learn_tags(std::span<const JobRecord> jobs);
  Result<void> keep_tubes(std::span<const JobRecord> jobs, std::vector<PutResult>& results);
  Result<void> watch_or_ignore(std::string_view command, const std::set<std::string>& tubes,
                               std::vector<client::Reply>& answers);
  Result<void> put_all(std::span<const JobRecord> jobs, std::vector<PutResult>& results);
  Result<void> bury(std::span<const JobRecord> jobs, std::vector<PutResult>& results);
  Result<void> take_back(std::vector<PutResult>& results);

  client::Connection& connection_;
  std::string used_{kDefaultTube};
  std::optional<bool> knows_tags_;  // of the server; nothing: it was not asked
  std::set<std::string> kept_;      // watched, but for the tube default
};

}  // namespace tubed::tubectl
