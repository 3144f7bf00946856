// Filters: the options that select jobs by what they are, and the walk over the jobs that match.
// The server filters (list-jobs with filters).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/connection.h"
#include "tubectl/jobs/record.h"
#include "tubectl/options.h"

namespace tubed::tubectl {

// A job has to meet all of them.
struct JobFilters {
  std::string text;  // in its body; empty: any
  std::optional<std::uint32_t> older_than;
  std::optional<std::uint32_t> newer_than;
  std::optional<Priority> priority_over;
  std::optional<Priority> priority_below;
  std::optional<std::uint32_t> failures;
  std::vector<std::string> tags;

  bool any() const { return !words().empty(); }
  // The filters of list-jobs, each after a space.
  std::string words() const;
};

inline constexpr std::string_view kFilterCapability = "list-jobs:filter";
inline constexpr std::string_view kFilterForm = "list-jobs with filters";
inline constexpr std::string_view kFilterGroup = "Which jobs";

// Each returns what is wrong with the value.
Result<void> check_filter_text(std::string_view text);
Result<void> check_filter_tag(std::string_view text);

template <auto kFilters>
constexpr OptionRow grep_option() {
  return option<kFilters, &JobFilters::text>(
      {.names = "--grep",
       .type = {.kind = ValueType::Kind::text, .placeholder = "TEXT", .check = check_filter_text},
       .help = "Only jobs with this text in their body",
       .group = kFilterGroup});
}
template <auto kFilters>
constexpr OptionRow older_option() {
  return option<kFilters, &JobFilters::older_than>(
      {.names = "--older-than",
       .type = seconds(),
       .help = "Only jobs that were put at least this time ago",
       .group = kFilterGroup});
}
template <auto kFilters>
constexpr OptionRow newer_option() {
  return option<kFilters, &JobFilters::newer_than>({.names = "--newer-than",
                                                    .type = seconds(),
                                                    .help = "Only jobs that were put since then",
                                                    .group = kFilterGroup});
}
template <auto kFilters>
constexpr OptionRow priority_over_option() {
  return option<kFilters, &JobFilters::priority_over>(
      {.names = "--pri-over",
       .type = count(0, UINT32_MAX),
       .help = "Only jobs with a greater priority, which is less urgent",
       .group = kFilterGroup});
}
template <auto kFilters>
constexpr OptionRow priority_below_option() {
  return option<kFilters, &JobFilters::priority_below>(
      {.names = "--pri-below",
       .type = count(0, UINT32_MAX),
       .help = "Only jobs with a smaller priority, which is more urgent",
       .group = kFilterGroup});
}
template <auto kFilters>
constexpr OptionRow failures_option() {
  return option<kFilters, &JobFilters::failures>(
      {.names = "--failures",
       .type = count(1, UINT32_MAX),
       .help = "Only jobs with at least this number of failed reservations",
       .group = kFilterGroup});
}
template <auto kFilters>
constexpr OptionRow tag_option() {
  return option<kFilters, &JobFilters::tags>(
      {.names = "--tag",
       .type = {.kind = ValueType::Kind::text,
                .placeholder = "NAME:VALUE",
                .check = check_filter_tag},
       .help = "Only jobs with this tag, such as grp:import; several times for more of them",
       .group = kFilterGroup});
}

// The jobs of a tube in a state, or `all`, that match the filters, page by page: at most 1,000 jobs
// at a time. A job that is there during the whole walk is returned once. Precondition: the server
// has list-jobs, and with filters kFilterCapability. Does not own the connection.
class ListedJobs {
 public:
  ListedJobs(client::Connection& connection, std::string tube, std::string_view state,
             const JobFilters& filters);

  // Returns at most `most` jobs, ordered by id, with id, tube and state only. Returns no jobs after
  // the last one, after a refusal by the server, and after a stop signal.
  Result<std::vector<JobRecord>> next(std::uint64_t most);
  // Continues at this id.
  void skip_to(JobId id) { from_ = id; }
  // The reply with which the server refused; its line is empty if the server did not refuse.
  const client::Reply& refusal() const { return refusal_; }

 private:
  client::Connection& connection_;
  std::string tube_;
  std::string state_;
  std::string filters_;
  JobId from_ = 0;
  bool at_end_ = false;
  client::Reply refusal_;
};

}  // namespace tubed::tubectl
