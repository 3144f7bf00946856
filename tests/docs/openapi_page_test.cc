#include "tools/docs/openapi_page.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "json/json.h"
#include "stats/stats.h"
#include "tests/docs/mentions.h"
#include "tools/docs/api_schemas.h"
#include "tools/docs/api_texts.h"

namespace tubed::docs {
namespace {

TEST_CASE("every operation is in the description and on the page") {
  const std::string yaml = openapi_yaml();
  const std::string page = api_markdown();
  for (const api::Operation& operation : api::operations()) {
    CAPTURE(operation.id);
    CHECK(mentions(yaml, fmt::format("operationId: {}\n", operation.id)));
    CHECK(mentions(yaml, fmt::format("  \"{}\":\n", operation.path)));
    CHECK(mentions(page, fmt::format("## {}\n\n```\n{} {}\n", operation.id,
                                     api::name_of(operation.method), operation.path)));
    CHECK(!summary_of(operation).empty());
  }
  CHECK(json::Json::parse(openapi_json()));
}

TEST_CASE("every parameter has a meaning and a type") {
  for (const api::Operation& operation : api::operations()) {
    for (const ParameterText& text : parameters_of_page(operation)) {
      CAPTURE(operation.id);
      CAPTURE(text.parameter.name);
      CHECK(!text.meaning.empty());
      CHECK((text.type != "text" || text.parameter.name == "filter"));
      CHECK(text.schema.is_object());
      const bool is_change = operation.method != api::Method::get;
      if (!text.parameter.in_path && !has_job_body(operation.kind))
        CHECK((text.place == Place::body) == is_change);
    }
  }
}

TEST_CASE("every operation has a successful answer, and one answer for each status") {
  const std::string schemas = to_line(api_schemas());
  for (const api::Operation& operation : api::operations()) {
    CAPTURE(operation.id);
    std::set<unsigned> statuses;
    for (const AnswerText& answer : answers_of_page(operation)) {
      CAPTURE(answer.status);
      CHECK(statuses.insert(answer.status).second);
      CHECK(!answer.meaning.empty());
      CHECK((answer.status >= 400) == (answer.schema == "Problem"));
      if (answer.schema.empty() && answer.status != 204) {
        CHECK(answer.result.is_object());
      } else if (!answer.schema.empty()) {
        CHECK(mentions(schemas, fmt::format("\"{}\":", answer.schema)));
      }
    }
    CHECK(*statuses.begin() < 300);
    for (const unsigned status : {400U, 401U, 403U, 421U, 503U}) CHECK(statuses.contains(status));
    CHECK((operation.method == api::Method::get) == !statuses.contains(413));
  }
}

TEST_CASE("every line of stats is in its schema") {
  const std::string schemas = to_line(api_schemas());
  const auto check = [&](const std::vector<stats::StatsText>& texts) {
    for (const stats::StatsText& text : texts)
      CHECK(mentions(schemas, fmt::format("\"{}\":{{\"type\":", text.key)));
  };
  check(stats::server_stats_texts(commands::command_counts()));
  check(stats::tube_stats_texts());
  check(stats::job_stats_texts());
}

TEST_CASE("answers of commands are results with the words of their replies") {
  const auto find = [](std::string_view id) -> const api::Operation& {
    return *std::ranges::find(api::operations(), id, &api::Operation::id);
  };
  CHECK(to_line(answers_of_page(find("kickTube"))[0].result) ==
        R"({"type":"object","required":["result"],"properties":{"result":{"type":"string",)"
        R"("enum":["KICKED"],"description":"The reply."},"count":{"type":"integer",)"
        R"("description":"How many jobs."}}})");
  CHECK(mentions(to_line(answers_of_page(find("drain"))[0].result), "DRAINING"));
  const auto put = answers_of_page(find("putJob"));
  CHECK((put[0].status == 200 && mentions(to_line(put[0].result), "\"state\"")));
  CHECK((put[1].status == 201 && !mentions(to_line(put[1].result), "\"state\"")));
  const auto reserve = answers_of_page(find("reserve"));
  CHECK((reserve[0].status == 201 && reserve[0].schema == "Reserved"));
  CHECK((reserve[1].status == 204 && reserve[1].type.empty()));
}

}  // namespace
}  // namespace tubed::docs
