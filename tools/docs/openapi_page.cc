#include "tools/docs/openapi_page.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "api/guard.h"
#include "stats/stats.h"
#include "text/ascii.h"
#include "tools/docs/api_schemas.h"
#include "tools/docs/api_texts.h"
#include "tools/docs/yaml.h"

namespace tubed::docs {

namespace {

using api::Kind;
using api::Method;
using api::Operation;
using json::Json;

constexpr const char* kJsonType = "application/json";

std::string described(const ParameterText& text) {
  return fmt::format("{} ({})", text.meaning, text.type);
}

// --- The description

Json parameters(const Operation& operation) {
  std::vector<Json> list;
  for (const ParameterText& text : parameters_of_page(operation)) {
    if (text.place == Place::body) continue;
    Json parameter = {{"name", text.parameter.name},
                      {"in", text.place == Place::path ? "path" : "query"}};
    if (text.parameter.needed) parameter["required"] = true;
    parameter["description"] = described(text);
    parameter["schema"] = text.schema;
    list.push_back(std::move(parameter));
  }
  if (operation.method != Method::get)
    list.push_back({{"$ref", "#/components/parameters/RequestedBy"}});
  return Json::array(std::move(list));
}

// The body of putJobs.
constexpr std::string_view kJobs = R"({
  "type": "array",
  "minItems": 1,
  "maxItems": 1000,
  "items": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "body": {"type": "string", "description": "The body of the job; or body_base64."},
      "body_base64": {"type": "string", "contentEncoding": "base64"},
      "pri": {"type": "integer", "minimum": 0, "maximum": 4294967295},
      "delay": {"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+(ms|s|m|h|d)?$"},
      "ttr": {"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+(ms|s|m|h|d)?$"},
      "tags": {"type": "string"}
    }
  }
})";

// Null: the request has no body.
Json request_body(const Operation& operation) {
  if (operation.kind == Kind::put) {
    return {{"description", "The body of the job, as it is."},
            {"required", true},
            {"content", {{"application/octet-stream", {{"schema", Json::object()}}}}}};
  }
  if (operation.kind == Kind::put_many) {
    return {{"description", "The jobs."},
            {"required", true},
            {"content", {{kJsonType, {{"schema", *Json::parse_document(kJobs)}}}}}};
  }
  Json properties;
  std::vector<std::string> required;
  for (const ParameterText& text : parameters_of_page(operation)) {
    if (text.place != Place::body) continue;
    Json schema = text.schema;
    schema["description"] = described(text);
    properties[text.parameter.name] = schema;
    if (text.parameter.needed) required.emplace_back(text.parameter.name);
  }
  if (!properties.is_object()) return {};
  Json schema = {{"type", "object"}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = texts(required);
  schema["properties"] = properties;
  return {{"description", "The parameters, which may be in the query instead."},
          {"required", !required.empty()},
          {"content", {{kJsonType, {{"schema", schema}}}}}};
}

std::string described(const AnswerText& answer) {
  std::string text;
  for (const std::string& reply : answer.replies)
    text.append(text.empty() ? "" : ", ").append(reply.substr(0, reply.find(' ')));
  return text.empty() ? answer.meaning : text + ". " + answer.meaning;
}

Json response(const Operation& operation, const AnswerText& answer) {
  Json response = {{"description", described(answer)}};
  const auto has_header = [&](std::string_view name, std::string_view meaning) {
    response["headers"][name] = {{"description", meaning}, {"schema", {{"type", "string"}}}};
  };
  if (answer.status == 201) has_header("Location", "The path of what was made.");
  if (answer.status == 401) has_header("WWW-Authenticate", "Bearer.");
  if (answer.type.empty()) return response;
  const Json schema = answer.schema.empty()
                          ? answer.result
                          : Json{{"$ref", "#/components/schemas/" + answer.schema}};
  Json& content = response["content"];
  if (operation.kind == Kind::body && answer.status == 200) {
    content[answer.type] = {{"schema", Json::object()}};
    content[kJsonType] = {{"schema", schema}};
  } else {
    content[answer.type] = {{"schema", schema}};
  }
  return response;
}

Json operation_object(const Operation& operation) {
  Json object = {
      {"operationId", operation.id},
      {"tags", texts({tag_of(operation)})},
      {"summary", summary_of(operation)},
      {"description", operation.line.empty() ? sentence_on_access(operation)
                                             : fmt::format("Command: {}. {}", operation.line,
                                                           sentence_on_access(operation))}};
  Json all = parameters(operation);
  if (!all.elements()->empty()) object["parameters"] = std::move(all);
  Json body = request_body(operation);
  if (body.is_object()) object["requestBody"] = std::move(body);
  Json& responses = object["responses"];
  for (const AnswerText& answer : answers_of_page(operation)) {
    // Each common problem is described once, with the sentences on changes.
    responses[std::to_string(answer.status)] =
        answer.is_common
            ? Json{{"$ref", fmt::format("#/components/responses/Problem{}", answer.status)}}
            : response(operation, answer);
  }
  return object;
}

// The parts that are the same in every version.
constexpr std::string_view kFrame = R"({
  "openapi": "3.1.0",
  "info": {
    "title": "tubed",
    "summary": "The HTTP API of tubed, a work queue that speaks beanstalkd's protocol.",
    "version": "",
    "license": {"name": "MIT", "identifier": "MIT"}
  },
  "servers": [{"url": "/api/v1"}],
  "security": [{}, {"token": []}, {"certificate": []}],
  "tags": [{"name": "server"}, {"name": "tubes"}, {"name": "jobs"}, {"name": "reservations"},
           {"name": "clients"}, {"name": "groups"}],
  "paths": {},
  "components": {
    "parameters": {
      "RequestedBy": {
        "name": "",
        "in": "header",
        "required": true,
        "description": "Any text. No page of another site can add it.",
        "schema": {"type": "string", "minLength": 1}
      }
    },
    "securitySchemes": {
      "token": {"type": "http", "scheme": "bearer", "description": "With http.auth = token."},
      "certificate": {"type": "mutualTLS", "description": "With http.auth = mtls."}
    },
    "responses": {},
    "schemas": {}
  }
})";

Json document() {
  Json all = *Json::parse_document(kFrame);
  all["info"]["version"] = stats::version();
  for (const Operation& operation : api::operations())
    all["paths"][operation.path][ascii_lower(name_of(operation.method))] =
        operation_object(operation);
  Json& components = all["components"];
  components["parameters"]["RequestedBy"]["name"] = api::kRequestedBy;
  for (const AnswerText& answer : common_answers())
    components["responses"][fmt::format("Problem{}", answer.status)] =
        response(Operation(), answer);
  components["schemas"] = api_schemas();
  return all;
}

// --- The page

// The values of parameters in the examples. All others are 7.
constexpr auto kExampleValues =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"tube", "mail"},
                                                                  {"to", "later"},
                                                                  {"group", "batch"},
                                                                  {"key", "max-attempts"},
                                                                  {"token", "$token"},
                                                                  {"ids", "[7, 8]"},
                                                                  {"state", "ready"}});

// Of curl, with the parameters that have to be given.
std::string example(const Operation& operation) {
  std::string path(operation.path);
  std::string query;
  std::string body;
  for (const ParameterText& text : parameters_of_page(operation)) {
    const std::string_view name = text.parameter.name;
    const auto* const row =
        std::ranges::find(kExampleValues, name, [](const auto& value) { return value.first; });
    const bool is_number = row == kExampleValues.end() || name == "ids";
    const std::string value(row == kExampleValues.end() ? "7" : row->second);
    if (text.place == Place::path) {
      const std::string place = fmt::format("{{{}}}", name);
      path.replace(path.find(place), place.size(), value);
    } else if (text.parameter.needed) {
      body += fmt::format("{}\"{}\": {}", body.empty() ? "" : ", ", name,
                          is_number ? value : '"' + value + '"');
    }
  }
  std::string line = "curl";
  if (operation.method != Method::get) {
    line += " -H 'X-Requested-By: curl'";
    if (operation.kind == Kind::put) {
      line += " --data-binary 'to: ada'";
    } else if (operation.kind == Kind::put_many) {
      line += " --json '[{\"body\": \"to: ada\"}, {\"body\": \"to: bob\", \"delay\": \"5m\"}]'";
    } else if (!body.empty()) {
      line += fmt::format(" --json '{{{}}}'", body);
    }
    const bool is_post_with_data = has_job_body(operation.kind) || !body.empty();
    if (operation.method != Method::post || !is_post_with_data)
      line += fmt::format(" -X {}", name_of(operation.method));
  }
  if (operation.kind == Kind::events) line += " -N";
  return fmt::format("{} \"$api{}\"", line, path);
}

void append_parameters(const Operation& operation, std::string& page) {
  const std::vector<ParameterText> texts = parameters_of_page(operation);
  if (texts.empty()) return;
  // In the order of Place.
  constexpr auto kPlaces = std::to_array<std::string_view>({"path", "query", "JSON"});
  page += "| parameter | in | default | meaning |\n|---|---|---|---|\n";
  for (const ParameterText& text : texts) {
    const api::Parameter& parameter = text.parameter;
    const std::string value = parameter.default_value
                                  ? fmt::format("`{}`", *parameter.default_value)
                              : parameter.needed ? "needed"
                                                 : "";
    page += fmt::format("| `{}` | {} | {}| {} |\n", parameter.name,
                        kPlaces[static_cast<std::size_t>(text.place)],
                        value.empty() ? "" : value + ' ', described(text));
  }
  page += '\n';
}

void append_answers(const std::vector<AnswerText>& answers, bool with_common, std::string& page) {
  page += "| status | content | meaning |\n|---|---|---|\n";
  for (const AnswerText& answer : answers) {
    if (answer.is_common && !with_common) continue;
    std::string replies;
    for (const std::string& reply : answer.replies)
      replies += fmt::format("{}`{}`", replies.empty() ? "" : ", ", reply);
    page += fmt::format("| {} | {}| {}{}{} |\n", answer.status,
                        answer.schema == "Problem" ? "problem "
                        : answer.type.empty()      ? ""
                        : answer.schema.empty()    ? fmt::format("`{}` ", answer.type)
                                                   : answer.schema + ' ',
                        replies, replies.empty() ? "" : ": ", answer.meaning);
  }
  page += '\n';
}

}  // namespace

std::string openapi_yaml() {
  return "# Generated by tools/generate-docs from the tables in src/. Do not edit.\n" +
         to_yaml(document());
}

std::string openapi_json() {
  return to_line(document()) + '\n';
}

std::string api_markdown() {
  std::string page =
      "<!-- Generated by tools/generate-docs from the tables in src/api and src/commands. Do not "
      "edit. -->\n\n"
      "# Operations of the HTTP API\n\n"
      "To enable and use the API, see [http-api.md](../http-api.md). For a description for tools, "
      "with the members of each answer, see [openapi.yaml](openapi.yaml).\n\n"
      "Paths are below `/api/v1`. A parameter in JSON may be in the query instead. In the "
      "examples, `api` is the address of the server: `api=http://127.0.0.1:11380/api/v1`. A client "
      "without a role may use all operations, whatever their family.\n\n"
      "A change requires the header `X-Requested-By`. In addition to the answers listed below, any "
      "operation may be answered with one of these problems (`application/problem+json`):\n\n";
  append_answers(common_answers(), true, page);
  for (const Operation& operation : api::operations()) {
    page +=
        fmt::format("## {}\n\n```\n{} {}\n```\n\n{} {}", operation.id, name_of(operation.method),
                    operation.path, summary_of(operation), sentence_on_access(operation));
    if (const commands::Command* command = command_of(operation))
      page += fmt::format(" Command: [{0}](commands.md#{0}).", command->name);
    page += "\n\n";
    append_parameters(operation, page);
    append_answers(answers_of_page(operation), false, page);
    page += fmt::format("```\n{}\n```\n\n", example(operation));
  }
  page.pop_back();
  return page;
}

}  // namespace tubed::docs
