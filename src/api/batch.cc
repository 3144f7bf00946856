// A put is parsed before it is sent: if one job is malformed, no job is put.
#include "api/batch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "json/json.h"
#include "text/numbers.h"

namespace tubed::api {

namespace {

Problem too_many_jobs() {
  return bad_request(fmt::format("the request has more than {} jobs", kMostBatchJobs));
}

// `place`: from 0.
Problem in_job(std::size_t place, Problem problem) {
  problem.detail = fmt::format("job {}: {}", place + 1, problem.detail);
  return problem;
}

// Adds the parameters of a job in front of those of all jobs, which it overrides.
std::optional<Problem> add_own(const json::Json& job, Parameters& parameters) {
  Parameters own;
  for (const auto& [name, value] : job.members()) {
    if (name == "body" || name == "body_base64") continue;
    if (name != "pri" && name != "delay" && name != "ttr" && name != "tags")
      return bad_parameter(name, "is unknown");
    if (auto problem = add_value(name, value, own)) return problem;
  }
  parameters.insert(parameters.begin(), own.begin(), own.end());
  remove_units(parameters);
  return std::nullopt;
}

std::optional<Problem> add_put(const Operation& operation, Parameters parameters,
                               const json::Json& job, Batch& batch) {
  if (!job.is_object()) return bad_request("it is no JSON object");
  const auto body = json::body_of(job);
  if (!body) return bad_request(body.error().message);
  if (auto problem = add_own(job, parameters)) return problem;
  const auto line = line_of(operation, parameters, body->size());
  if (const auto* problem = std::get_if<Problem>(&line)) return *problem;
  const auto& text = std::get<std::string>(line);
  if (!is_line_of(operation, text)) return bad_format(operation, parameters);
  batch.input.append(text).append(*body).append("\r\n");
  batch.jobs.emplace_back();
  return std::nullopt;
}

}  // namespace

std::variant<Batch, Problem> batch_of_puts(const Operation& operation, const Parameters& parameters,
                                           std::string_view text) {
  const auto document = json::Json::parse_document(text);
  const auto* jobs = document ? document->elements() : nullptr;
  if (jobs == nullptr || jobs->empty()) return bad_request("the body is no JSON array of jobs");
  if (jobs->size() > kMostBatchJobs) return too_many_jobs();
  Batch batch;
  for (std::size_t place = 0; place < jobs->size(); ++place) {
    if (auto problem = add_put(operation, parameters, (*jobs)[place], batch))
      return in_job(place, std::move(*problem));
  }
  return batch;
}

std::variant<Batch, Problem> batch_of_ids(const Operation& operation,
                                          const Parameters& parameters) {
  const std::string* text = find(parameters, "ids");
  if (text == nullptr) return bad_parameter("ids", "is missing");
  std::vector<JobId> jobs;
  std::string_view left = *text;
  for (;;) {
    const std::size_t end = std::min(left.find(','), left.size());
    const auto id = parse_number<JobId>(left.substr(0, end));
    if (!id) return bad_parameter("ids", "is no list of ids with commas between");
    if (jobs.size() == kMostBatchJobs)
      return bad_parameter("ids", fmt::format("has more than {} ids", kMostBatchJobs));
    jobs.push_back(*id);
    if (end == left.size()) break;
    left.remove_prefix(end + 1);
  }
  return batch_of_jobs(operation, jobs);
}

Batch batch_of_jobs(const Operation& operation, const std::vector<JobId>& jobs) {
  Batch batch;
  for (const JobId id : jobs) {
    const auto line = line_of(operation, {{"id", fmt::to_string(id)}});
    batch.input += std::get<std::string>(line);
    batch.jobs.emplace_back(id);
  }
  return batch;
}

}  // namespace tubed::api
