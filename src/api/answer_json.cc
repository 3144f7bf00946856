#include "api/answer_json.h"

#include <utility>

#include <fmt/format.h>

#include "api/block_json.h"
#include "base/overloaded.h"
#include "json/json.h"
#include "text/ascii.h"

namespace tubed::api {

using namespace protocol;

namespace {

Response ok(const Block& block, std::string_view rows = {}) {
  return {.head = {}, .text = json_of(block, rows) + '\n'};
}

Response created(const Operation& operation, const Number& answer) {
  Response response = ok({[&](BlockSink& sink) {
    sink.member("result", Text{answer.word});
    sink.member(operation.number, answer.value);
  }});
  if (!has_job_body(operation.kind)) return response;
  response.head.status = 201;
  response.head.location = fmt::format("/api/v1/jobs/{}", answer.value);
  return response;
}

}  // namespace

Response response_of(const Problem& problem) {
  return {.head = {.status = problem.status, .content = Content::problem},
          .text = to_json(problem)};
}

Response response_of(const Operation& operation, const Answer& answer) {
  const auto of_status = [&](const Status& status) {
    if (find_problem(operation, status.word) != nullptr)
      return response_of(problem_of(status.word));
    return ok({[&](BlockSink& sink) { sink.member("result", Text{status.word}); }});
  };
  const auto of_numbers = [&](const Numbers& numbers) {
    return ok({[&](BlockSink& sink) {
      sink.member("result", Text{numbers.word});
      sink.member(operation.number, numbers.first);
      if (!numbers.state.empty()) sink.member("state", Text{ascii_lower(numbers.state)});
      if (numbers.second) sink.member("pri", std::uint64_t{*numbers.second});
    }});
  };
  const auto of_name = [](const Name& name) {
    if (name.word == word::kNotReloaded) return response_of(not_reloaded(std::string(name.name)));
    return ok({[&](BlockSink& sink) {
      sink.member("result", Text{name.word});
      sink.member("name", Text{name.name});
    }});
  };
  const auto of_job = [](const JobAnswer& job) {
    return ok({[&](BlockSink& sink) {
      sink.member("id", job.id);
      write_body(job.body.view(), sink);
    }});
  };
  return std::visit(
      Overloaded{of_status, of_numbers, of_name, of_job,
                 [&](const Number& number) { return created(operation, number); },
                 [&](const Block& block) { return ok(block, operation.rows); },
                 // No operation has a command with one of these answers.
                 [](const auto&) { return response_of(problem_of(word::kInternalError)); }},
      answer);
}

void write_body(std::string_view body, BlockSink& sink) {
  const auto [key, value] = json::body_member(body);
  sink.member(key, Text{value});
}

}  // namespace tubed::api
