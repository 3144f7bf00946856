// JobPutter: puts jobs into their tubes, in their state, many at a time.
//
// A buried job is put with a long delay, then reserved by its id and buried: no worker can get it
// in between. A reserved one becomes ready. The client watches the tubes that are put into, so that
// they stay there until the last put; it never reserves from them.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/connection.h"
#include "tubectl/jobs/record.h"

namespace tubed::tubectl {

// What became of a job.
struct PutResult {
  JobId id = 0;           // the new one; 0: it was refused, and is not there
  client::Reply refusal;  // what the server said to it
};

class JobPutter {
 public:
  // Precondition: nobody else changes what `client` uses and watches.
  explicit JobPutter(client::Connection& connection) : connection_(connection) {}

  // In this order, one result each. A refusal does not keep those behind it from being put.
  Result<std::vector<PutResult>> put(std::span<const JobRecord> jobs);

 private:
  Result<void> keep_tubes(std::span<const JobRecord> jobs, std::vector<PutResult>& results);
  Result<void> watch_or_ignore(std::string_view command, const std::set<std::string>& tubes,
                               std::vector<client::Reply>& answers);
  Result<void> put_all(std::span<const JobRecord> jobs, std::vector<PutResult>& results);
  Result<void> bury(std::span<const JobRecord> jobs, std::vector<PutResult>& results);
  Result<void> take_back(std::vector<PutResult>& results);

  client::Connection& connection_;
  std::string used_{kDefaultTube};
  std::set<std::string> kept_;  // watched, but for the tube default
};

}  // namespace tubed::tubectl
