// JobPutter: puts jobs into their tubes, in their states, many at a time.
//
// A tag that the server does not know is left out, and counted by LostTags. A job is refused if
// another job has its unique key.
//
// A buried job is put with a long delay, then reserved by id and buried, so no worker can get it. A
// reserved job becomes ready. The client watches the tubes into which it puts, which keeps them in
// existence until the last put; it never reserves from them.
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

// Does not own the connection. The tubes stay watched until the connection closes; beyond 1000
// tubes, earlier tubes are ignored first.
class JobPutter {
 public:
  // Precondition: no other code changes the tubes that the connection uses and watches.
  explicit JobPutter(client::Connection& connection) : connection_(connection) {}

  // Puts the jobs in this order and returns a result for each. A refused job does not stop the jobs
  // after it.
  Result<std::vector<PutResult>> put(std::span<const JobRecord> jobs);

  // True if the server knows the tag, such as "idp". Precondition: put() had a job with tags.
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
  std::optional<Capabilities> server_;  // no value: not asked
  std::set<std::string> kept_;          // watched tubes other than default
};

// Counts jobs that were put without some of their tags.
class LostTags {
 public:
  // Counts a job that the putter has put.
  void count(const JobRecord& job, const JobPutter& putter);
  // Prints the lost tags on standard error, if any.
  void report() const;
  // The number of jobs for each word, such as {"idp":2}.
  Json json() const;
  bool any() const { return !jobs_.empty(); }

 private:
  std::map<std::string, std::uint64_t> jobs_;  // by word
};

}  // namespace tubed::tubectl
