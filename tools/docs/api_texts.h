// The text about an operation on the pages of the HTTP API: made from its row, from the row of its
// command, and from the tables of api_texts.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/operation.h"
#include "json/json.h"

namespace tubed::docs {

std::string summary_of(const api::Operation& operation);
// "tubes", for the group of the operation.
std::string tag_of(const api::Operation& operation);
// The right to use it: "Family: inspect."
std::string sentence_on_access(const api::Operation& operation);

// The place of a parameter in a request.
enum class Place : std::uint8_t { path, query, body };
struct ParameterText {
  api::Parameter parameter;
  Place place = Place::query;
  std::string meaning;
  std::string type;   // as on the page of commands
  json::Json schema;  // in the language of JSON Schema
};
std::vector<ParameterText> parameters_of_page(const api::Operation& operation);

// One status of the operation.
struct AnswerText {
  unsigned status = 200;
  std::string meaning;
  std::string type;                       // of its content; empty: it has no content
  std::string schema = {};                // the name of a schema of the components; empty: `result`
  json::Json result = {};                 // a schema of its own
  std::vector<std::string> replies = {};  // the replies of the command, of a problem
  bool is_common = false;                 // a problem of every request of its kind
};
// Sorted by status, the successes first.
std::vector<AnswerText> answers_of_page(const api::Operation& operation);
// The common problems of all operations together.
std::vector<AnswerText> common_answers();

}  // namespace tubed::docs
