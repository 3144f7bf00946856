#include "api/problem.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/assert.h"
#include "json/json.h"
#include "protocol/reply.h"

namespace tubed::api {

namespace {

namespace word = protocol::word;

constexpr auto kReplies = std::to_array<ReplyProblem>({
    {word::kNotFound, 404, "not-found", "Not found", "There is no such job, tube or reservation."},
    {word::kDenied, 403, "denied", "Denied", "The role of the client does not allow this."},
    {word::kUnauthorized, 401, "unauthorized", "Unauthorized", "The client has no role."},
    {word::kBadFormat, 400, "bad-format", "Bad format",
     "A parameter has a value that the command does not take."},
    {word::kUnknownCommand, 400, "unknown-command", "Unknown command",
     "The server does not know the command."},
    {word::kExpectedCrlf, 400, "expected-crlf", "Bad body",
     "The body is not as long as announced."},
    {"ALREADY_RESERVED", 409, "already-reserved", "Already reserved", "A client holds the job."},
    {word::kNotIgnored, 409, "not-ignored", "Not ignored", "It is the only tube watched."},
    {word::kNotReloaded, 409, "not-reloaded", "Not reloaded",
     "The settings or one of their files have a mistake, or the server is stopping."},
    {word::kDeadlineSoon, 409, "deadline-soon", "Deadline soon",
     "A held job is in the last second of its TTR."},
    {word::kJobTooBig, 413, "job-too-big", "Job too big", "The body exceeds limits.job_bytes."},
    {word::kInternalError, 500, "internal-error", "Internal error", "The server has a fault."},
    {word::kDraining, 503, "draining", "Draining", "The server takes no new jobs."},
    {word::kOutOfMemory, 507, "out-of-memory", "Out of memory",
     "A limit of the server, of the tube or of the role is reached."},
});

}  // namespace

std::string to_json(const Problem& problem) {
  json::Json object = {{"type", fmt::format("urn:tubed:problem:{}", problem.kind)},
                       {"title", problem.title},
                       {"status", problem.status},
                       {"detail", problem.detail}};
  if (!problem.reply.empty()) object["reply"] = problem.reply;
  if (!problem.parameter.empty()) object["parameter"] = problem.parameter;
  if (!problem.leader.empty()) object["leader"] = problem.leader;
  if (!problem.state.empty()) object["state"] = problem.state;
  return to_line(object) + '\n';
}

const ReplyProblem* find_problem(std::string_view word) {
  const auto found = std::ranges::find(kReplies, word, &ReplyProblem::word);
  return found == kReplies.end() ? nullptr : &*found;
}

Problem problem_of(std::string_view word) {
  const ReplyProblem* reply = find_problem(word);
  TUBED_ASSERT(reply != nullptr);
  return {.status = reply->status,
          .kind = reply->kind,
          .title = reply->title,
          .detail = std::string(reply->detail),
          .reply = reply->word};
}

Problem bad_request(std::string detail) {
  return {
      .status = 400, .kind = "bad-request", .title = "Bad request", .detail = std::move(detail)};
}

Problem bad_parameter(std::string_view name, std::string_view mistake) {
  constexpr std::size_t kShown = 64;
  name = name.substr(0, kShown);
  Problem problem = bad_request(fmt::format("the parameter {} {}", name, mistake));
  problem.parameter = name;
  return problem;
}

Problem body_too_long(std::size_t most) {
  Problem problem = bad_request(fmt::format("the body is longer than {} KiB", most));
  problem.status = 413;
  return problem;
}

Problem not_found(std::string detail) {
  return {.status = 404, .kind = "no-such-path", .title = "Not found", .detail = std::move(detail)};
}

Problem forbidden(std::string detail) {
  return {.status = 403, .kind = "forbidden", .title = "Forbidden", .detail = std::move(detail)};
}

Problem no_cluster() {
  return {.status = 404,
          .kind = "no-cluster",
          .title = "No cluster",
          .detail = "The server is in no cluster."};
}

Problem wrong_state(JobState state, bool reservation_ended) {
  std::string detail = fmt::format("The job is {}.", name_of(state));
  if (reservation_ended) {
    detail = fmt::format("The reservation has ended: the job is {}.", name_of(state));
  } else if (state == JobState::reserved) {
    detail = "A client holds the job.";
  }
  return {.status = 409,
          .kind = "wrong-state",
          .title = "Wrong state",
          .detail = std::move(detail),
          .reply = word::kNotFound,
          .state = name_of(state)};
}

Problem not_reloaded(std::string reason) {
  Problem problem = problem_of(word::kNotReloaded);
  problem.detail = std::move(reason);
  return problem;
}

Problem not_the_leader(std::string detail, std::string leader) {
  return {.status = 503,
          .kind = "not-the-leader",
          .title = "Not the leader",
          .detail = std::move(detail),
          .leader = std::move(leader)};
}

Problem stopping() {
  return {.status = 503,
          .kind = "stopping",
          .title = "Stopping",
          .detail = "The server is stopping: try again later, or use another server."};
}

Problem closed() {
  return {.status = 503,
          .kind = "closed",
          .title = "Closed",
          .detail = "The server has ended the request before its answer: the command may have run.",
          .may_have_run = true};
}

}  // namespace tubed::api
