// Batch: the commands of a request for many jobs. They are sent at once and run in one tick, as far
// as its budget allows, so that one commit stores their facts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/operation.h"

namespace tubed::api {

inline constexpr std::size_t kMostBatchJobs = 1000;
inline constexpr std::size_t kMostBatchBytes = 1024 * 1024;  // of the body of the request

// The input of a conversation. Each command has one answer.
struct Batch {
  std::string input = {};
  std::vector<std::optional<JobId>> jobs = {};  // of each command; no value: of a put
};

// Returns the puts of a JSON array of objects, or the problem if a command would be malformed. The
// parameters are those of each job that has none of its own. O(text).
std::variant<Batch, Problem> batch_of_puts(const Operation& operation, const Parameters& parameters,
                                           std::string_view text);

// Returns a command for each of the ids in the parameter `ids`, which are separated by commas, or
// the problem if one is malformed. O(ids).
std::variant<Batch, Problem> batch_of_ids(const Operation& operation, const Parameters& parameters);
// The same for these jobs.
Batch batch_of_jobs(const Operation& operation, const std::vector<JobId>& jobs);

}  // namespace tubed::api
