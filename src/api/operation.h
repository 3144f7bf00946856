// Operation: one row of the table of the HTTP API.
//
// Most operations are a command of the protocol. The row has its line, with placeholders for the
// parameters of the request; grammar, limits, authorization and answers are the command's own.
// [docs/reference/api.md]
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/problem.h"
#include "api/target.h"
#include "commands/table.h"
#include "facts/role.h"
#include "json/json.h"

namespace tubed::api {

enum class Method : std::uint8_t { get, post, put, remove };

// The source of the answer to a request.
enum class Kind : std::uint8_t {
  command,       // one command; its answer as JSON
  stats,         // the same, which every node of a cluster answers: it is about the node
  body,          // peek: the body of a job, as it is or as JSON
  tubes,         // pages of stats-tubes, filtered and sorted
  jobs,          // pages of list-jobs, sorted
  put,           // a command with the body of the request
  put_many,      // a put for each job in the body of the request
  reserve,       // a command that reserves a job, which a token then names
  reserve_many,  // a command that reserves several jobs
  each,          // a command on each of several jobs
  held,          // a command on the job that a token names
  all_held,      // a command on each job that a token names
  access,        // the rights of the client
  settings,      // the settings in force
  history,       // samples of the last hour or day
  cluster,       // the nodes of the cluster
  events,        // a stream of counters
};

// True if a request reserves jobs.
constexpr bool reserves_jobs(Kind kind) {
  return kind == Kind::reserve || kind == Kind::reserve_many;
}
// True if a request names a reservation.
constexpr bool is_of_reservation(Kind kind) {
  return kind == Kind::held || kind == Kind::all_held;
}
// True if the body of a request is not a JSON object with parameters.
constexpr bool has_job_body(Kind kind) {
  return kind == Kind::put || kind == Kind::put_many;
}

struct Operation {
  std::string_view id;  // its name in the description of the API: "kickTube"
  Method method;
  std::string_view path;  // below /api/v1, with placeholders: "/tubes/{tube}/kick"
  // The command: "kick-tube {tube} {bound=100} {state?}". A placeholder is a required parameter, or
  // {name=default}, or {name?}, which may be missing with all words after it. A word may have a
  // prefix, "age>{age_over?}", and is then missing by itself. Empty: no command.
  std::string_view line;
  Kind kind = Kind::command;
  std::string_view rows = {};         // the name of the list of an answer with rows
  std::string_view number = "count";  // the name of the number of an answer
  std::string_view success = {};      // a word that is a success here, and refuses other commands
  std::string_view waits = {};    // the parameter that says how long it may wait, kMostWaitSeconds
  Access access = Access::any;    // of an operation without a command
  bool needs_state = false;       // the command answers NOT_FOUND also for a job in another state
  std::string_view summary = {};  // empty: the command's
};

// Proxies cut off a client that waits for longer, and the server does after a minute.
inline constexpr std::uint32_t kMostWaitSeconds = 50;

std::span<const Operation> operations();

// The row of its command; null: the operation has no command. O(1).
const commands::Command* command_of(const Operation& operation);
// The family of its command, or its own. Reading with a command that can also change something is
// of the family inspect. O(1).
Access access_of(const Operation& operation);
// The problem that this reply of its command means; null: the reply is a success. O(problems).
const ReplyProblem* find_problem(const Operation& operation, std::string_view word);

// The operation of a request, and the parameters of its path. Without an operation: no operation
// has the path (404), or only with the methods in `allowed` (405). `segments`: of the target, after
// "api" and "v1". O(operations).
struct Routed {
  const Operation* operation = nullptr;  // null: no operation has the path and the method
  Parameters path;
  std::string allowed;  // "GET, POST"; empty: no operation has the path
};
Routed route(std::optional<Method> method, std::span<const std::string> segments);

// One placeholder of a line.
struct Placeholder {
  std::string_view name;
  std::optional<std::string_view> default_value;
  bool optional = false;
  std::string_view prefix = {};
};
// Calls visit(word) for each plain word of the line, and visit(placeholder) for each placeholder.
template <class Visit>
void for_each_word(std::string_view line, const Visit& visit);

// A parameter of an operation.
struct Parameter {
  std::string_view name;
  bool in_path = false;
  bool needed = false;
  std::optional<std::string_view> default_value = std::nullopt;
};
// Returns the parameters of its path, then of its line, in their order, without the length of the
// body and the job of a reservation. O(path + line).
std::vector<Parameter> parameters_of(const Operation& operation);

// Returns the problem if a parameter is unknown or given twice. O(parameters).
std::optional<Problem> check_names(const Operation& operation, const Parameters& parameters);

// Returns the line of the command, with its line end, made from the parameters of the request, or
// the problem if a parameter is missing, unknown or not a word. `bytes`: the size of the body, for
// {bytes}. Precondition: remove_units(parameters). O(line).
std::variant<std::string, Problem> line_of(const Operation& operation, const Parameters& parameters,
                                           std::uint64_t bytes = 0);

// True if the command of the operation takes the line. O(line).
bool is_line_of(const Operation& operation, std::string_view line);
// Returns the problem of a line that the command does not take. It names the parameter and its form
// if the command would take the line with another value of this parameter alone.
// O(parameters * line).
Problem bad_format(const Operation& operation, const Parameters& parameters);

// True if the values of the parameter are times, which may have a unit: 90s, 5m, 2h or 1d. Without
// one they are seconds; a command may take milliseconds, 500ms, too.
bool is_time(std::string_view parameter);
// Gives the times the form of the protocol: with no unit, or in milliseconds. A text that is not a
// time stays as it is: the command refuses it. O(parameters).
void remove_units(Parameters& parameters);

// True if the text can be one word of a line: not empty, without space and control characters.
// O(text).
bool is_word(std::string_view text);

// Adds a parameter with a value of JSON, a text or a whole number. Returns the problem if it is
// anything else. O(value).
std::optional<Problem> add_value(const std::string& name, const json::Json& value,
                                 Parameters& parameters);
// Adds the parameters in the body of a request, a JSON object with such values. The value of `ids`
// may be an array of whole numbers. Returns the problem if the body is anything else. O(text).
std::optional<Problem> add_json(std::string_view text, Parameters& parameters);

// "GET", and the reverse.
std::string_view name_of(Method method);
std::optional<Method> method_named(std::string_view name);

// --- Implementation

template <class Visit>
void for_each_word(std::string_view line, const Visit& visit) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    const std::size_t brace = word.find('{');
    if (brace == std::string_view::npos) {
      visit(word);
      continue;
    }
    std::string_view inner = word.substr(brace + 1, word.size() - brace - 2);
    Placeholder placeholder;
    placeholder.prefix = word.substr(0, brace);
    if (inner.ends_with('?')) {
      placeholder.optional = true;
      inner.remove_suffix(1);
    }
    const std::size_t equals = inner.find('=');
    placeholder.name = inner.substr(0, equals);
    if (equals != std::string_view::npos) placeholder.default_value = inner.substr(equals + 1);
    visit(placeholder);
  }
}

}  // namespace tubed::api
