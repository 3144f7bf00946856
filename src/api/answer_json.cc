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

std::string result_and(std::string_view word, const std::string& members) {
  std::string text = "{\"result\":";
  json::append_text(word, text);
  return text + members + "}\n";
}

Response ok(std::string text) {
  return {.head = {}, .text = std::move(text)};
}

Response created(const Operation& operation, const Number& answer) {
  Response response =
      ok(result_and(answer.word, fmt::format(",\"{}\":{}", operation.number, answer.value)));
  if (operation.kind != Kind::put) return response;
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
    return ok(result_and(status.word, {}));
  };
  const auto of_numbers = [&](const Numbers& numbers) {
    std::string members = fmt::format(",\"{}\":{}", operation.number, numbers.first);
    if (!numbers.state.empty())
      members += fmt::format(",\"state\":\"{}\"", ascii_lower(numbers.state));
    if (numbers.second) members += fmt::format(",\"pri\":{}", *numbers.second);
    return ok(result_and(numbers.word, members));
  };
  const auto of_job = [](const JobAnswer& job) {
    return ok(fmt::format("{{\"id\":{},{}}}\n", job.id, members_of_body(job.body.view())));
  };
  return std::visit(
      Overloaded{of_status, of_numbers, of_job,
                 [&](const Number& number) { return created(operation, number); },
                 [&](const Name& name) {
                   return ok(result_and(name.word, fmt::format(",\"name\":\"{}\"", name.name)));
                 },
                 [&](const Block& block) { return ok(json_of(block, operation.rows) + '\n'); },
                 // No operation has a command with one of these answers.
                 [](const auto&) { return response_of(problem_of(word::kInternalError)); }},
      answer);
}

std::string members_of_body(std::string_view body) {
  json::Json object = json::Json::object();
  json::set_body(object, body);
  const std::string line = to_line(object);
  return line.substr(1, line.size() - 2);
}

}  // namespace tubed::api
