// JobPutter: puts jobs into their tubes, in their state, many at a time.
//
// A tag of a job is put if the server knows it; else it is left out, which LostTags counts. A job
// whose unique key another job has is refused.
//
// A buried job is put with a long delay, then reserved by its id and buried: no worker can get it
// in between. A reserved one becomes ready. The client watches the tubes that are put into, so that
// they stay there until the last put; it never reserves from them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/connection.h"
#include "tubectl/jobs/capabilities.h"
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

  // The server knows a tag by its word, "idp". Precondition: put() had a job with tags.
  bool knows_tag(std::string_view word) const;

 private:
  std::string known_tags(const JobRecord& job) const;
  Result<void> learn_tags(std::span<const JobRecord> jobs);
  Result<void> keep_tubes(std::span<const JobRecord> jobs, std::vector<PutResult>& results);
  Result<void> watch_or_ignore(std::string_view command, const std::set<std::string>& tubes,
                               std::vector<client::Reply>& answers);
  Result<void> put_all(std::span<const JobRecord> jobs, std::vector<PutResult>& results);
  Result<void> bury(std::span<const JobRecord> jobs, std::vector<PutResult>& results);
  Result<void> take_back(std::vector<PutResult>& results);

  client::Connection& connection_;
  std::string used_{kDefaultTube};
  std::optional<Capabilities> server_;  // nothing: it was not asked
  std::set<std::string> kept_;          // watched, but for the tube default
};

// How many jobs were put without some of their tags.
class LostTags {
 public:
  // Counts a job that the putter has put.
  void count(const JobRecord& job, const JobPutter& putter);
  // Prints on standard error which tags were lost, if any.
  void report() const;
  // The number of jobs for each word, {"idp":2}.
  Json json() const;
  bool any() const { return !jobs_.empty(); }

 private:
  std::map<std::string, std::uint64_t> jobs_;  // by word
};

}  // namespace tubed::tubectl
