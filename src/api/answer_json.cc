// A block of stats is text that commands have made for clients of the protocol (protocol/yaml.h).
// It is read here line by line: a value in quotes is text, a number stays as it is written, `true`
// and `false` too, and everything else is text. So is a name that looks like a number.
#include "api/answer_json.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/overloaded.h"
#include "json/json.h"
#include "text/ascii.h"

namespace tubed::api {

using namespace protocol;

namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// A whole number, or one with digits after the point. [RFC 8259, section 6]
bool is_number(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const bool leads_with_zero = whole.size() > 1 && whole.front() == '0';
  return is_digits(whole) && !leads_with_zero &&
         (point == std::string_view::npos || is_digits(text.substr(point + 1)));
}

// The keys and columns whose values are texts, even those that look like a number: the name of a
// tube may be `5`.
bool has_text(std::string_view key) {
  constexpr auto kTexts = std::to_array<std::string_view>(
      {"name", "state", "address", "role", "used", "watched", "dead", "expired"});
  return std::ranges::find(kTexts, key) != kTexts.end();
}

void append_value(std::string_view value, bool is_text, std::string& text) {
  if (!is_text && (is_number(value) || value == "true" || value == "false")) {
    text.append(value);
  } else if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    json::append_text(value.substr(1, value.size() - 2), text);
  } else {
    json::append_text(value, text);
  }
}

void append_name(std::string_view name, std::string& text) {
  json::append_text(name, text);
  text += ':';
}

// A row: the words of its line by the columns; the rest after the last column is `tags`.
void append_row(const std::vector<std::string_view>& columns, std::string_view line,
                std::string& text) {
  text += '{';
  std::size_t column = 0;
  while (!line.empty()) {
    if (column > 0) text += ',';
    if (column == columns.size()) {
      append_name("tags", text);
      json::append_text(line, text);
      break;
    }
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    const std::string_view name = columns[column++];
    append_name(name, text);
    append_value(word, has_text(name), text);
  }
  text += '}';
}

std::string rows_as_json(std::string_view block, std::string_view rows) {
  std::string text = "{";
  std::vector<std::string_view> columns;
  bool first_row = true;
  std::size_t number = 0;
  for_each_line(block, [&](std::string_view line) {
    if (number == 0) {
      append_name("next", text);
      text.append(line.substr(line.find(' ') + 1)) += ',';
      append_name(rows, text);
      text += '[';
    } else if (number == 1) {
      for_each_field(line, [&](std::string_view name) { columns.push_back(name); });
    } else {
      if (!std::exchange(first_row, false)) text += ',';
      append_row(columns, line, text);
    }
    ++number;
  });
  return text + "]}";
}

std::string result_and(std::string_view word, const std::string& members) {
  std::string text = "{";
  append_name("result", text);
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

// The reply to `drain` is the word that refuses a put.
bool is_refusal(const Operation& operation, std::string_view word) {
  const bool has_begun = operation.line == "drain" && word == word::kDraining;
  return find_problem(word) != nullptr && !has_begun;
}

}  // namespace

Response response_of(const Problem& problem) {
  return {.head = {.status = problem.status, .content = Content::problem},
          .text = to_json(problem)};
}

Response response_of(const Operation& operation, const Answer& answer) {
  const auto of_status = [&](const Status& status) {
    if (is_refusal(operation, status.word)) return response_of(problem_of(status.word));
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
                 [&](const TextBlock& block) {
                   return ok(json_of_block(block.text, operation.rows) + '\n');
                 },
                 // No operation has a command with one of these answers.
                 [](const auto&) { return response_of(problem_of(word::kInternalError)); }},
      answer);
}

std::string members_of_block(std::string_view block) {
  std::string text;
  for_each_line(block, [&](std::string_view line) {
    const std::size_t colon = line.find(": ");
    const std::string_view key = line.substr(0, colon);
    // A job's id is the first line of its block; that of the server is hexadecimal.
    const bool is_text = has_text(key) || (key == "id" && !text.empty());
    if (!text.empty()) text += ',';
    append_name(key, text);
    append_value(colon == std::string_view::npos ? "" : line.substr(colon + 2), is_text, text);
  });
  return text;
}

std::string json_of_block(std::string_view block, std::string_view rows) {
  if (!rows.empty()) return rows_as_json(block, rows);
  const bool is_list = block.substr(std::min(block.find('\n') + 1, block.size())).starts_with("- ");
  if (!is_list) return '{' + members_of_block(block) + '}';
  std::string text = "[";
  for_each_line(block, [&](std::string_view item) {
    if (text.size() > 1) text += ',';
    json::append_text(item, text);
  });
  return text + ']';
}

std::string members_of_body(std::string_view body) {
  json::Json object = json::Json::object();
  json::set_body(object, body);
  const std::string line = to_line(object);
  return line.substr(1, line.size() - 2);
}

}  // namespace tubed::api
