// A parameter that is an argument of the command has the argument's type; its meaning is a row of
// kMeanings. A reply of the command is a problem with its status (api/problem.h), or else the
// `result` of a success; operations whose answer is a block or a body have a row in kSuccesses.
#include "tools/docs/api_texts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/parameter_form.h"
#include "facts/policy.h"
#include "stats/tube_columns.h"
#include "text/numbers.h"
#include "tools/docs/api_schemas.h"
#include "tools/docs/commands_page.h"

namespace tubed::docs {

namespace {

using api::Kind;
using api::Method;
using api::Operation;
using json::Json;

constexpr std::string_view kJson = "application/json";

struct Meaning {
  std::string_view id;  // of the operation; empty: any
  std::string_view name;
  std::string_view text;
};
// The first row that fits counts.
constexpr auto kMeanings = std::to_array<Meaning>({
    {"moveJob", "tube", "The tube that the job goes to."},
    {"listTubes", "from", "The number of the first tube of the page: `next` of the page before."},
    {"listJobs", "from",
     "The least id of the page, or its first row in a sorted list: `next` of the page before."},
    {"listJobs", "sort",
     "The column by which all these jobs are sorted, and then by id; not with next. failures and "
     "dead-from need a filter."},
    {"listClients", "from", "The least id of the page: `next` of the page before."},
    {"listJobs", "state", "The state of the jobs; all: any; next: those that are given next."},
    {"listJobs", "q", "Only jobs with this text of at most 200 bytes in their body."},
    {"listJobs", "age_over", "Only jobs that are more seconds old."},
    {"listJobs", "age_below", "Only jobs that are fewer seconds old."},
    {"listJobs", "pri_over", "Only jobs with a greater priority, which is less urgent."},
    {"listJobs", "pri_below", "Only jobs with a smaller priority, which is more urgent."},
    {"listJobs", "failures_over",
     "Only jobs of which more reservations have ended without their deletion."},
    {"listJobs", "tag",
     "Only jobs with this tag, such as grp:import; con:key is in con:key:3 as well."},
    {"kickTube", "state",
     "Which jobs; without it, buried jobs, or delayed jobs if there are no buried jobs."},
    {"clearTube", "state", "Which jobs; without it, all jobs, also those that clients hold."},
    {"clearTube", "bound", "How many jobs at most; with a state only."},
    {"moveJob", "pri",
     "The priority from now on; with a delay only. Without both it keeps its own."},
    {"moveJob", "delay", "The delay from now on; with a priority only."},
    {"releaseReservation", "pri", "The priority from now on; without it the job keeps its own."},
    {"buryReservation", "pri", "The priority from now on; without it the job keeps its own."},
    {"kickJob", "delay", "How long the job is delayed; without it, it is ready."},
    {"pauseTube", "delay", "How long the pause is; 0 ends a pause."},
    {"touchReservation", "seconds", "When the reservation ends; without it, after the TTR."},
    {"getHistory", "tube", "A tube instead of the server."},
    {"getHistory", "span",
     "The last hour or the last day. Of a tube, and of the day, there is one point a minute."},
    {"deleteJobs", "ids", "The ids of the jobs; in the query with commas between."},
    {"reserveJobs", "count",
     "How many jobs at most. Their bodies are at most limits.output_bytes, or one body."},
    {"", "tube", "The name of the tube; a slash in it is escaped as %2F."},
    {"", "id", "The id of the job."},
    {"", "token", "The token of the reservation."},
    {"", "group", "The name of the group; a slash in it is escaped as %2F."},
    {"", "key", "The key of the policy."},
    {"", "value", "The value of the key."},
    {"", "pri", "The priority: the least number is the most urgent."},
    {"", "delay", "How long the job waits before it is ready."},
    {"", "ttr", "How long a client may hold the job."},
    {"", "tags", "The tags of the job."},
    {"", "bound", "How many jobs at most."},
    {"", "state", "The state of the jobs."},
    {"", "to", "The tube that the jobs go to."},
    {"", "limit", "How many rows the page has at most."},
    {"", "timeout", "How long it waits for a job."},
    {"", "seconds", "How long it waits."},
    {"", "filter", "Only tubes with this text in their name."},
    {"", "sort", "The column by which all tubes are sorted, and then by name."},
    {"", "order", "The order of the column."},
});

// An answer of success, if it is more than the reply of the command.
struct Success {
  std::string_view id;
  std::string_view schema;  // empty: the content is a text
  std::string_view meaning;
  unsigned status = 200;
  std::string_view type = kJson;
};
constexpr auto kSuccesses = std::to_array<Success>({
    {"getAccess", "Access", "What the client may do."},
    {"getServer", "Server", "The statistics of the server."},
    {"getCapabilities", "Capabilities", "The names of commands and of forms of commands."},
    {"getSettings", "Settings", "Each setting."},
    {"getHistory", "History", "The samples, the oldest first. A time without samples is a gap."},
    {"getCluster", "Cluster", "The cluster, as this node sees it."},
    {"listTubes", "Tubes",
     "A page of tubes. With filter, sort or order it has the total number of tubes, and reaches "
     "10,000 rows far."},
    {"getTube", "Tube", "The statistics of the tube."},
    {"getTubeTimes", "Times", "Both times of the jobs of the tube, as counts in buckets."},
    {"listJobs", "Jobs",
     "A page of jobs. With a filter it may be short, or empty, although more pages follow. With "
     "sort or order it is a page of a list of all these jobs, which has their number and reaches "
     "10,000 rows far."},
    {"reload", "Reload", "What has changed, and what needs a restart."},
    {"getPolicy", "Policy", "Each key with its value, and where the value is from."},
    {"getJob", "Job", "The statistics of the job."},
    {"getReservation", "Job", "The statistics of the job."},
    {"listClients", "Clients", "A page of clients."},
    {"getGroup", "Group", "How many members are in each state."},
    {"watchEvents", "",
     "Events `server` and `tubes`, once a second, until one side ends the connection.", 200,
     "text/event-stream"},
    {"getJobBody", "Body", "The body; as JSON with Accept: application/json.", 200,
     "application/octet-stream"},
    {"reserve", "Reserved", "The job, and the token of its reservation.", 201},
    {"reserve", "", "No job came in time.", 204, ""},
    {"reserveJob", "Reserved", "The job, and the token of its reservation.", 201},
    {"reserveJobs", "ReservedJobs", "The jobs, each with a token, and the token of all.", 201},
    {"reserveJobs", "", "No job came in time.", 204, ""},
    {"putJobs", "Results",
     "The result of each job, in their order. If all are refused for the same reason, that problem "
     "is the answer."},
    {"deleteJobs", "Results",
     "The result of each job, in their order. A job that does not exist has the status 404, and a "
     "job that a client holds 409."},
    {"deleteReservedJobs", "Results", "The result of each job."},
});

std::string_view meaning_of(const Operation& operation, std::string_view name) {
  const auto found = std::ranges::find_if(kMeanings, [&](const Meaning& row) {
    return (row.id.empty() || row.id == operation.id) && row.name == name;
  });
  return found == kMeanings.end() ? std::string_view() : found->text;
}

Json words_in(std::string_view text) {
  std::istringstream stream{std::string(text)};
  return texts({std::istream_iterator<std::string>(stream), {}});
}

Json keys_of_policies() {
  std::vector<std::string> keys;
  for (const PolicyKeyRow& row : policy_keys()) keys.emplace_back(row.name);
  return texts(keys);
}

// "integer from 1 to 1000"
Json schema_of_range(std::string_view type) {
  type.remove_prefix(std::string_view("integer from ").size());
  const auto least = take_number<std::uint64_t>(type).value_or(0);
  type.remove_prefix(std::string_view(" to ").size());
  const auto most = leading_number<std::uint64_t>(type);
  const bool has_units = type.find(api::kOrWithUnit) != std::string_view::npos;
  if (!has_units) return {{"type", "integer"}, {"minimum", least}, {"maximum", most}};
  return {{"type", texts({"integer", "string"})},
          {"minimum", least},
          {"maximum", most},
          {"pattern", "^[0-9]+s?$"}};
}

// The schema of each type that has this part; the first row that fits counts.
struct TypeSchema {
  std::string_view part;
  std::string_view schema;
};
constexpr auto kTypeSchemas = std::to_array<TypeSchema>({
    {"milliseconds as 500ms",
     R"({"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+(ms|s|m|h|d)?$"})"},
    {"or with a unit as",
     R"({"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+(s|m|h|d)?$"})"},
    {"< 2^32", R"({"type": "integer", "minimum": 0, "maximum": 4294967295})"},
    {"< 2^64", R"({"type": "integer", "minimum": 0})"},
    {"value of the key", R"({"type": ["string", "integer"]})"},
    {"tube name", R"({"type": "string", "minLength": 1, "maxLength": 200,
                      "pattern": "^[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]*$"})"},
    {"1,000 ids", R"({"type": ["array", "string"], "items": {"type": "integer", "minimum": 0},
                       "minItems": 1, "maxItems": 1000, "pattern": "^[0-9]+(,[0-9]+)*$"})"},
    {"", R"({"type": "string"})"},
});

Json schema_of_type(std::string_view type) {
  constexpr std::string_view kWords = "one of: ";
  if (type.starts_with("integer from ")) return schema_of_range(type);
  if (type.starts_with(kWords))
    return {{"type", "string"}, {"enum", words_in(type.substr(kWords.size()))}};
  if (type == "key of a policy") return {{"type", "string"}, {"enum", keys_of_policies()}};
  const auto* const row = std::ranges::find_if(kTypeSchemas, [type](const TypeSchema& one) {
    return type.find(one.part) != std::string_view::npos;
  });
  return *Json::parse_document(row->schema);
}

// --- Answers

// The word of a reply, and the names of what follows it.
std::string_view word_of(std::string_view reply) {
  return reply.substr(0, reply.find(' '));
}

// Sentences, without those that are there already.
void append_sentence(std::string_view sentence, std::string& text) {
  if (text.find(sentence) != std::string::npos) return;
  text.append(text.empty() ? "" : " ").append(sentence);
}

using Problems = std::map<unsigned, AnswerText>;

void add_problem(unsigned status, std::string_view reply, std::string_view meaning, Problems& all,
                 bool is_common = false) {
  const auto [place, is_new] = all.try_emplace(status);
  AnswerText& answer = place->second;
  answer.is_common = is_common && (is_new || answer.is_common);
  answer.status = status;
  answer.type = "application/problem+json";
  answer.schema = "Problem";
  if (!reply.empty() && std::ranges::find(answer.replies, reply) == answer.replies.end())
    answer.replies.emplace_back(reply);
  append_sentence(meaning, answer.meaning);
}

template <Kind kKind>
bool has_kind(const Operation& operation) {
  return operation.kind == kKind;
}
bool is_change(const Operation& operation) {
  return operation.method != Method::get;
}
bool may_wait(const Operation& operation) {
  return !operation.waits.empty();
}

// Requests that name one job itself.
bool needs_state(const Operation& operation) {
  return operation.needs_state && !api::is_of_reservation(operation.kind) &&
         operation.kind != Kind::each;
}
bool is_of_reservation(const Operation& operation) {
  return api::is_of_reservation(operation.kind);
}
bool reserves_jobs(const Operation& operation) {
  return api::reserves_jobs(operation.kind);
}

// A problem that is not a reply of the command.
struct RequestProblem {
  unsigned status;
  std::string_view reply;
  std::string_view meaning;
  bool is_common = true;
  // Null: of every operation.
  bool (*concerns)(const Operation&) = nullptr;
};
constexpr auto kRequestProblems = std::to_array<RequestProblem>({
    {400, "BAD_FORMAT", "A parameter is unknown, missing or malformed."},
    {401, "UNAUTHORIZED", "The client has no role, where http.auth needs one."},
    {403, "DENIED", "The role of the client does not allow it."},
    {403, "", "The request comes from a page of another site."},
    {403, "", "A change has no X-Requested-By, or http.api is read.", true, is_change},
    {421, "", "The Host is no name of this server (http.hosts)."},
    {503, "", "Too many requests are under way."},
    {503, "", "The server is stopping."},
    {503, "", "The server has ended the request before its answer, and the command may have run."},
    {503, "", "The server is a node of a cluster and does not serve clients."},
    {507, "OUT_OF_MEMORY", "The role has as many connections as it may.", true,
     [](const Operation& operation) {
       return !operation.line.empty() && !is_of_reservation(operation);
     }},
    {413, "", "The body is longer than 16 KiB.", true,
     [](const Operation& operation) {
       return is_change(operation) && !has_job_body(operation.kind);
     }},
    {413, "", "The body is longer than 1,024 KiB.", false, has_kind<Kind::put_many>},
    {411, "", "The request has no Content-Length.", false, has_kind<Kind::put>},
    {413, "JOB_TOO_BIG", "The body exceeds limits.job_bytes.", false, has_kind<Kind::put>},
    {404, "NOT_FOUND", "There is no such reservation, or its job no longer exists.", false,
     is_of_reservation},
    {409, "NOT_FOUND", "The reservation has ended. `state` is the state of the job.", false,
     is_of_reservation},
    {404, "NOT_FOUND", "There is no such job.", false, needs_state},
    {409, "NOT_FOUND",
     "Another client holds the job, or the command is not for a job in its state, which is "
     "`state`.",
     false, needs_state},
    {503, "", "Too many jobs are reserved over HTTP.", false, reserves_jobs},
    {429, "", "As many requests of the role wait as its share allows.", false, may_wait},
    {503, "", "Too many requests wait.", false, may_wait},
    {507, "OUT_OF_MEMORY", "It would be one tube or watch too many.", false,
     [](const Operation& operation) { return reserves_jobs(operation) && may_wait(operation); }},
    {503, "", "Too many streams are open.", false, has_kind<Kind::events>},
    {404, "", "The server is in no cluster.", false, has_kind<Kind::cluster>},
    {404, "NOT_FOUND", "There is no such tube, and it has no history.", false,
     has_kind<Kind::history>},
});

// The schema of {"result":…} with the numbers that the replies name.
Json schema_of_results(const Operation& operation, const std::vector<std::string>& words,
                       bool has_number, bool has_state) {
  Json properties = {
      {"result", {{"type", "string"}, {"enum", texts(words)}, {"description", "The reply."}}}};
  std::vector<std::string> required = {"result"};
  if (has_number) {
    const bool is_id = operation.number == "id";
    properties[operation.number] = {
        {"type", "integer"}, {"description", is_id ? "The id of the job." : "How many jobs."}};
    if (operation.kind == Kind::put) required.emplace_back(operation.number);
  }
  if (has_state) {
    properties["state"] = {{"type", "string"}, {"description", "The state of that job."}};
    properties["pri"] = {{"type", "integer"},
                         {"description", "The priority of that job, if it is new."}};
  }
  return {{"type", "object"}, {"required", texts(required)}, {"properties", properties}};
}

bool begins_block(std::string_view word) {
  return word == "OK" || word == "FOUND" || word == "RESERVED";
}

// The answers of success to a command that has no schema of its own.
void add_results(const Operation& operation, std::vector<AnswerText>& answers) {
  std::vector<std::string> words;
  std::string meaning;
  bool has_number = false;
  for (const commands::ReplyText& reply : command_of(operation)->replies) {
    const std::string_view word = word_of(reply.reply);
    if (begins_block(word) || find_problem(operation, word) != nullptr) continue;
    if (std::ranges::find(words, word) == words.end()) words.emplace_back(word);
    has_number = has_number || reply.reply.find('<') != std::string_view::npos;
    const bool has_state = reply.reply.find("<state>") != std::string_view::npos;
    if (operation.kind == Kind::put) {
      answers.push_back({.status = has_state ? 200U : 201U,
                         .meaning = std::string(reply.meaning),
                         .type = std::string(kJson),
                         .result = schema_of_results(operation, words, true, has_state)});
    } else {
      append_sentence(fmt::format("{}: {}", word, reply.meaning), meaning);
    }
  }
  if (operation.kind == Kind::put) return;
  answers.push_back({.status = 200,
                     .meaning = meaning,
                     .type = std::string(kJson),
                     .result = schema_of_results(operation, words, has_number, false)});
}

}  // namespace

std::string summary_of(const Operation& operation) {
  return std::string(operation.summary.empty() ? command_of(operation)->summary
                                               : operation.summary);
}

std::string tag_of(const Operation& operation) {
  const std::string_view first = operation.path.substr(1, operation.path.substr(1).find('/'));
  for (const std::string_view tag : {"tubes", "jobs", "reservations", "clients", "groups"}) {
    if (first == tag) return std::string(tag);
  }
  return "server";
}

std::string sentence_on_access(const Operation& operation) {
  const commands::Command* command = command_of(operation);
  if (command != nullptr && api::access_of(operation) != command->access)
    return "Family: inspect or " + std::string(commands::family_of(*command)) + ".";
  if (command != nullptr) {
    const std::string_view family = commands::family_of(*command);
    return family.empty() ? sentence_on_family(*command) : "Family: " + std::string(family) + ".";
  }
  if (operation.access == Access::inspect) return "Family: inspect.";
  return operation.access == Access::admin ? "Family: admin." : "For every role.";
}

std::vector<ParameterText> parameters_of_page(const Operation& operation) {
  const bool in_body = operation.method != Method::get && !has_job_body(operation.kind);
  std::vector<ParameterText> texts;
  for (const api::Parameter& parameter : api::parameters_of(operation)) {
    ParameterText text{.parameter = parameter,
                       .place = parameter.in_path ? Place::path
                                : in_body         ? Place::body
                                                  : Place::query,
                       .meaning = std::string(meaning_of(operation, parameter.name)),
                       .type = api::form_of(operation, parameter.name),
                       .schema = {}};
    text.schema = schema_of_type(text.type);
    if (parameter.default_value) {
      const std::string_view value = *parameter.default_value;
      const auto number = parse_number<std::uint64_t>(value);
      text.schema["default"] = number ? Json(*number) : Json(value);
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<AnswerText> answers_of_page(const Operation& operation) {
  std::vector<AnswerText> answers;
  for (const Success& row : kSuccesses) {
    if (row.id != operation.id) continue;
    answers.push_back({.status = row.status,
                       .meaning = std::string(row.meaning),
                       .type = std::string(row.type),
                       .schema = std::string(row.schema),
                       .result = {{"type", "string"}}});
  }
  if (answers.empty()) add_results(operation, answers);
  std::ranges::sort(answers, {}, &AnswerText::status);
  Problems problems;
  if (const commands::Command* command = command_of(operation)) {
    for (const commands::ReplyText& reply : command->replies) {
      const api::ReplyProblem* problem = find_problem(operation, word_of(reply.reply));
      // The server ends the body of a put itself.
      if (problem == nullptr || problem->word == protocol::word::kExpectedCrlf) continue;
      if (operation.needs_state && problem->word == protocol::word::kNotFound) continue;
      add_problem(problem->status, reply.reply, reply.meaning, problems);
    }
  }
  for (const RequestProblem& row : kRequestProblems) {
    if (row.concerns == nullptr || row.concerns(operation))
      add_problem(row.status, row.reply, row.meaning, problems, row.is_common);
  }
  for (auto& [status, answer] : problems) answers.push_back(std::move(answer));
  return answers;
}

std::vector<AnswerText> common_answers() {
  Problems problems;
  for (const RequestProblem& row : kRequestProblems) {
    if (row.is_common) add_problem(row.status, row.reply, row.meaning, problems, true);
  }
  std::vector<AnswerText> answers;
  for (auto& [status, answer] : problems) answers.push_back(std::move(answer));
  return answers;
}

}  // namespace tubed::docs
