#include "tools/docs/openapi_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/guard.h"
#include "stats/stats.h"
#include "tools/docs/api_schemas.h"
#include "tools/docs/api_texts.h"

namespace tubed::docs {

namespace {

using api::Kind;
using api::Method;
using api::Operation;

constexpr std::string_view kBase = "/api/v1";
constexpr const char* kJsonType = "application/json";

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return static_cast<char>(c | 0x20); });
  return result;
}

std::string described(const ParameterText& text) {
  return fmt::format("{} ({})", text.meaning, text.type);
}

// --- The description

Document parameters(const Operation& operation) {
  Document list = Document::list({});
  for (const ParameterText& text : parameters_of_page(operation)) {
    if (text.place == Place::body) continue;
    Document parameter = {{"name", text.parameter.name},
                          {"in", text.place == Place::path ? "path" : "query"}};
    if (text.parameter.needed) parameter["required"] = true;
    parameter["description"] = described(text);
    parameter["schema"] = text.schema;
    list.append(std::move(parameter));
  }
  if (operation.method != Method::get)
    list.append({{"$ref", "#/components/parameters/RequestedBy"}});
  return list;
}

// Empty: the request has no body.
Document request_body(const Operation& operation) {
  if (operation.kind == Kind::put) {
    return {{"description", "The body of the job, as it is."},
            {"required", true},
            {"content", {{"application/octet-stream", {{"schema", Document()}}}}}};
  }
  Document properties;
  std::vector<std::string> required;
  for (const ParameterText& text : parameters_of_page(operation)) {
    if (text.place != Place::body) continue;
    Document schema = text.schema;
    schema["description"] = described(text);
    properties[text.parameter.name] = schema;
    if (text.parameter.needed) required.emplace_back(text.parameter.name);
  }
  if (properties.empty()) return {};
  Document schema = {{"type", "object"}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = Document::texts(required);
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

Document response(const Operation& operation, const AnswerText& answer) {
  Document response = {{"description", described(answer)}};
  if (answer.status == 201) {
    response["headers"] = {
        {"Location",
         {{"description", "The path of what was made."}, {"schema", {{"type", "string"}}}}}};
  }
  if (answer.status == 401) {
    response["headers"] = {
        {"WWW-Authenticate", {{"description", "Bearer."}, {"schema", {{"type", "string"}}}}}};
  }
  if (answer.type.empty()) return response;
  const Document schema = answer.schema.empty()
                              ? answer.result
                              : Document{{"$ref", "#/components/schemas/" + answer.schema}};
  Document& content = response["content"];
  if (operation.kind == Kind::body && answer.status == 200) {
    content[answer.type] = {{"schema", Document()}};
    content[kJsonType] = {{"schema", schema}};
  } else {
    content[answer.type] = {{"schema", schema}};
  }
  return response;
}

Document operation_object(const Operation& operation) {
  Document object = {
      {"operationId", operation.id},
      {"tags", Document::texts({tag_of(operation)})},
      {"summary", summary_of(operation)},
      {"description", operation.line.empty() ? sentence_on_access(operation)
                                             : fmt::format("Command: {}. {}", operation.line,
                                                           sentence_on_access(operation))}};
  Document all = parameters(operation);
  if (!all.empty()) object["parameters"] = std::move(all);
  Document body = request_body(operation);
  if (!body.empty()) object["requestBody"] = std::move(body);
  Document& responses = object["responses"];
  for (const AnswerText& answer : answers_of_page(operation)) {
    // Of a change too, so that each problem is described once.
    responses[std::to_string(answer.status)] =
        answer.is_common
            ? Document{{"$ref", fmt::format("#/components/responses/Problem{}", answer.status)}}
            : response(operation, answer);
  }
  return object;
}

Document common_responses() {
  Document responses;
  for (const AnswerText& answer : common_answers())
    responses[fmt::format("Problem{}", answer.status)] = response(Operation(), answer);
  return responses;
}

Document document() {
  Document paths;
  for (const Operation& operation : api::operations())
    paths[operation.path][lower(name_of(operation.method))] = operation_object(operation);
  Document tags = Document::list({});
  for (const std::string_view tag :
       {"server", "tubes", "jobs", "reservations", "clients", "groups"})
    tags.append({{"name", tag}});
  return {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "tubed"},
        {"summary", "The HTTP API of tubed, a work queue that speaks beanstalkd's protocol."},
        {"version", stats::version()},
        {"license", {{"name", "MIT"}, {"identifier", "MIT"}}}}},
      {"servers", Document::list({{{"url", kBase}}})},
      {"security",
       Document::list(
           {Document(), {{"token", Document::list({})}}, {{"certificate", Document::list({})}}})},
      {"tags", tags},
      {"paths", paths},
      {"components",
       {{"parameters",
         {{"RequestedBy",
           {{"name", api::kRequestedBy},
            {"in", "header"},
            {"required", true},
            {"description", "Any text. No page of another site can add it."},
            {"schema", {{"type", "string"}, {"minLength", 1}}}}}}},
        {"securitySchemes",
         {{"token",
           {{"type", "http"}, {"scheme", "bearer"}, {"description", "With http.auth = token."}}},
          {"certificate", {{"type", "mutualTLS"}, {"description", "With http.auth = mtls."}}}}},
        {"responses", common_responses()},
        {"schemas", api_schemas()}}}};
}

// --- The page

// Of curl, with the parameters that have to be given.
std::string example(const Operation& operation) {
  std::string path(operation.path);
  std::string query;
  std::string body;
  for (const ParameterText& text : parameters_of_page(operation)) {
    const std::string_view name = text.parameter.name;
    const std::string value = name == "tube"    ? "mail"
                              : name == "to"    ? "later"
                              : name == "group" ? "batch"
                              : name == "key"   ? "max-attempts"
                              : name == "token" ? "$token"
                              : name == "state" ? "ready"
                                                : "7";
    if (text.place == Place::path) {
      const std::string place = fmt::format("{{{}}}", name);
      path.replace(path.find(place), place.size(), value);
    } else if (text.parameter.needed) {
      const bool is_number = value == "7";
      body += fmt::format("{}\"{}\": {}", body.empty() ? "" : ", ", name,
                          is_number ? value : '"' + value + '"');
    }
  }
  std::string line = "curl";
  if (operation.method != Method::get) {
    line += " -H 'X-Requested-By: curl'";
    if (operation.kind == Kind::put) {
      line += " --data-binary 'to: ada'";
    } else if (!body.empty()) {
      line += fmt::format(" --json '{{{}}}'", body);
    }
    const bool is_post_with_data = operation.kind == Kind::put || !body.empty();
    if (operation.method != Method::post || !is_post_with_data)
      line += fmt::format(" -X {}", name_of(operation.method));
  }
  if (operation.kind == Kind::events) line += " -N";
  return fmt::format("{} \"$api{}\"", line, path);
}

std::string_view word_of(Place place) {
  switch (place) {
    case Place::path:
      return "path";
    case Place::query:
      return "query";
    case Place::body:
      break;
  }
  return "JSON";
}

void append_parameters(const Operation& operation, std::string& page) {
  const std::vector<ParameterText> texts = parameters_of_page(operation);
  if (texts.empty()) return;
  page += "| parameter | in | default | meaning |\n|---|---|---|---|\n";
  for (const ParameterText& text : texts) {
    const api::Parameter& parameter = text.parameter;
    const std::string value = parameter.default_value
                                  ? fmt::format("`{}`", *parameter.default_value)
                              : parameter.needed ? "needed"
                                                 : "";
    page += fmt::format("| `{}` | {} | {}| {} |\n", parameter.name, word_of(text.place),
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
         document().to_yaml();
}

std::string openapi_json() {
  return document().to_json();
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
