// The table of operations, and how a request becomes the line of a command.
//
// A parameter becomes one word of the line; a text is percent-encoded. The word is not empty and
// has no space and no control character: no client can add a word or a line to the command. The
// command's own grammar decides about the word, and answers BAD_FORMAT.
#include "api/operation.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/parameter_form.h"
#include "base/overloaded.h"
#include "json/json.h"
#include "protocol/reply.h"
#include "text/numbers.h"
#include "text/percent.h"
#include "text/units.h"

namespace tubed::api {

namespace {

using enum Method;

constexpr auto kOperations = std::to_array<Operation>({
    {.id = "getAccess",
     .method = get,
     .path = "/access",
     .line = {},
     .kind = Kind::access,
     .summary = "Shows what the client may do."},
    {.id = "getServer", .method = get, .path = "/server", .line = "stats", .kind = Kind::stats},
    {.id = "getCapabilities", .method = get, .path = "/capabilities", .line = "capabilities"},
    {.id = "getSettings",
     .method = get,
     .path = "/settings",
     .line = {},
     .kind = Kind::settings,
     .access = Access::admin,
     .summary = "Shows the settings in force. A role needs admin, and no tubes of its own."},
    {.id = "getHistory",
     .method = get,
     .path = "/history",
     .line = {},
     .kind = Kind::history,
     .access = Access::inspect,
     .summary = "Shows samples of the server's counters in the last hour or day, or of those of a "
                "tube. Each of the 50 busiest tubes has a history."},
    {.id = "getCluster",
     .method = get,
     .path = "/cluster",
     .line = {},
     .kind = Kind::cluster,
     .access = Access::inspect,
     .summary = "Shows the nodes of the cluster, as this node sees them."},
    {.id = "watchEvents",
     .method = get,
     .path = "/events",
     .line = {},
     .kind = Kind::events,
     .access = Access::inspect,
     .summary = "Sends the counters of the server, and those of the tubes that have changed, once "
                "a second, as server-sent events."},
    {.id = "drain",
     .method = post,
     .path = "/drain",
     .line = "drain",
     .success = protocol::word::kDraining},
    {.id = "undrain", .method = remove, .path = "/drain", .line = "undrain"},
    {.id = "reload", .method = post, .path = "/reload", .line = "reload"},
    {.id = "listTubes",
     .method = get,
     .path = "/tubes",
     .line = "stats-tubes {from=0} {limit=100}",
     .kind = Kind::tubes,
     .rows = "tubes"},
    {.id = "getTube", .method = get, .path = "/tubes/{tube}", .line = "stats-tube {tube}"},
    {.id = "getTubeTimes",
     .method = get,
     .path = "/tubes/{tube}/times",
     .line = "stats-tube-times {tube}",
     .rows = "times"},
    {.id = "listJobs",
     .method = get,
     .path = "/tubes/{tube}/jobs",
     .line = "list-jobs {tube} {state=ready} {from=0} {limit=100} body:{q?} age>{age_over?} "
             "age<{age_below?} pri>{pri_over?} pri<{pri_below?} failures>{failures_over?} "
             "tag:{tag?}",
     .kind = Kind::jobs,
     .rows = "jobs"},
    {.id = "putJob",
     .method = post,
     .path = "/tubes/{tube}/jobs",
     .line = "put-in-tube {tube} {pri=1024} {delay=0} {ttr=60} {bytes} {tags?}",
     .kind = Kind::put,
     .number = "id",
     .summary = "Puts a job into a tube. The body of the request is that of the job."},
    {.id = "putJobs",
     .method = post,
     .path = "/tubes/{tube}/put-batch",
     .line = "put-in-tube {tube} {pri=1024} {delay=0} {ttr=60} {bytes} {tags?}",
     .kind = Kind::put_many,
     .number = "id",
     .summary = "Puts up to 1,000 jobs into a tube. The parameters are those of each job that has "
                "none of its own."},
    {.id = "kickTube",
     .method = post,
     .path = "/tubes/{tube}/kick",
     .line = "kick-tube {tube} {bound=100} {state?}"},
    {.id = "pauseTube",
     .method = post,
     .path = "/tubes/{tube}/pause",
     .line = "pause-tube {tube} {delay}"},
    {.id = "clearTube",
     .method = post,
     .path = "/tubes/{tube}/clear",
     .line = "flush-tube {tube} {state?} {bound?}"},
    {.id = "truncateTube",
     .method = post,
     .path = "/tubes/{tube}/truncate",
     .line = "truncate {tube}"},
    {.id = "moveJobs",
     .method = post,
     .path = "/tubes/{tube}/move",
     .line = "move-jobs {tube} {state} {to} {bound?}"},
    {.id = "getPolicy",
     .method = get,
     .path = "/tubes/{tube}/policy",
     .line = "tube-policy {tube}",
     .summary = "Shows the value of each key of the policy of a tube, and where it comes from."},
    {.id = "setPolicy",
     .method = put,
     .path = "/tubes/{tube}/policy/{key}",
     .line = "tube-policy {tube} {key} {value}",
     .summary = "Sets the value of a key of the policy of a tube."},
    {.id = "removePolicy",
     .method = remove,
     .path = "/tubes/{tube}/policy/{key}",
     .line = "tube-policy {tube} {key} -",
     .summary = "Takes the value of a key of the policy of a tube away."},
    {.id = "reserve",
     .method = post,
     .path = "/tubes/{tube}/reserve",
     .line = "reserve-with-timeout {timeout=0}",
     .kind = Kind::reserve,
     .waits = "timeout",
     .summary = "Reserves the most urgent job of a tube; waits for one at most this number of "
                "seconds."},
    {.id = "reserveJobs",
     .method = post,
     .path = "/tubes/{tube}/reserve-batch",
     .line = "reserve-batch {count=10} {timeout=0}",
     .kind = Kind::reserve_many,
     .waits = "timeout",
     .summary = "Reserves up to this number of jobs of a tube, the most urgent first; waits for "
                "the first at most this number of seconds."},
    {.id = "deleteJobs",
     .method = remove,
     .path = "/jobs",
     .line = "delete {id}",
     .kind = Kind::each,
     .needs_state = true,
     .summary = "Deletes up to 1,000 jobs, which no client holds."},
    {.id = "getJob", .method = get, .path = "/jobs/{id}", .line = "stats-job {id}"},
    {.id = "getJobBody",
     .method = get,
     .path = "/jobs/{id}/body",
     .line = "peek {id}",
     .kind = Kind::body,
     .summary = "Shows the body of a job, as it is, or as JSON if the client accepts that alone."},
    {.id = "waitForJob",
     .method = get,
     .path = "/jobs/{id}/wait",
     .line = "wait {seconds=0} {id}",
     .number = "id",
     .waits = "seconds"},
    {.id = "deleteJob",
     .method = remove,
     .path = "/jobs/{id}",
     .line = "delete {id}",
     .needs_state = true},
    {.id = "deleteJobByForce",
     .method = post,
     .path = "/jobs/{id}/delete-force",
     .line = "delete-force {id}"},
    {.id = "kickJob",
     .method = post,
     .path = "/jobs/{id}/kick",
     .line = "kick-job {id} {delay?}",
     .needs_state = true},
    {.id = "moveJob",
     .method = post,
     .path = "/jobs/{id}/move",
     .line = "move-job {id} {tube} {pri?} {delay?}",
     .needs_state = true},
    {.id = "reprioritizeJob",
     .method = post,
     .path = "/jobs/{id}/reprioritize",
     .line = "reprioritize {id} {pri}"},
    {.id = "reserveJob",
     .method = post,
     .path = "/jobs/{id}/reserve",
     .line = "reserve-job {id}",
     .kind = Kind::reserve,
     .needs_state = true},
    {.id = "getReservation",
     .method = get,
     .path = "/reservations/{token}",
     .line = "stats-job {id}",
     .kind = Kind::held,
     .needs_state = true,
     .summary = "Shows the statistics of the job that a token holds."},
    {.id = "deleteReservation",
     .method = remove,
     .path = "/reservations/{token}",
     .line = "delete {id}",
     .kind = Kind::held,
     .needs_state = true,
     .summary = "Deletes the job that a token holds: its work is done."},
    {.id = "deleteReservedJobs",
     .method = remove,
     .path = "/reservations/{token}/jobs",
     .line = "delete {id}",
     .kind = Kind::all_held,
     .needs_state = true,
     .summary = "Deletes all jobs that a token still holds: their work is done."},
    {.id = "touchReservedJobs",
     .method = post,
     .path = "/reservations/{token}/touch-all",
     .line = "touch-all",
     .kind = Kind::held,
     .summary = "Restarts the TTR of all jobs that a token still holds."},
    {.id = "releaseReservation",
     .method = post,
     .path = "/reservations/{token}/release",
     .line = "release {id} {pri} {delay=0}",
     .kind = Kind::held,
     .needs_state = true,
     .summary = "Makes the job that a token holds ready or delayed again. Without pri it keeps its "
                "priority."},
    {.id = "buryReservation",
     .method = post,
     .path = "/reservations/{token}/bury",
     .line = "bury {id} {pri}",
     .kind = Kind::held,
     .needs_state = true,
     .summary = "Sets the job that a token holds aside until a client kicks it. Without pri it "
                "keeps its priority."},
    {.id = "touchReservation",
     .method = post,
     .path = "/reservations/{token}/touch",
     .line = "touch {id} {seconds?}",
     .kind = Kind::held,
     .needs_state = true,
     .summary = "Restarts the TTR of the job that a token holds, or ends its reservation this "
                "number of seconds from now."},
    {.id = "listClients",
     .method = get,
     .path = "/clients",
     .line = "list-clients {from=0} {limit=100}",
     .rows = "clients"},
    {.id = "getGroup", .method = get, .path = "/groups/{group}", .line = "stats-group {group}"},
});

constexpr std::array<std::string_view, 4> kMethods = {"GET", "POST", "PUT", "DELETE"};

constexpr std::string_view kTags = "tags";
// Ids with commas between.
constexpr std::string_view kIds = "ids";
// Any text, which is percent-encoded.
constexpr std::string_view kText = "q";

bool matches(std::string_view path, std::span<const std::string> segments, Parameters& found) {
  found.clear();
  path.remove_prefix(1);
  for (const std::string& segment : segments) {
    if (path.empty()) return false;
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (!part.starts_with('{')) {
      if (part != segment) return false;
      continue;
    }
    if (segment.empty()) return false;
    found.emplace_back(part.substr(1, part.size() - 2), segment);
  }
  return path.empty();
}

// Returns a value of the parameter that each command takes.
std::string_view valid_value(std::string_view parameter) {
  constexpr auto kValues =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"tube", "a"},
                                                                    {"to", "a"},
                                                                    {"group", "a"},
                                                                    {"from", "0"},
                                                                    {"state", "buried"},
                                                                    {"key", "max-attempts"},
                                                                    {"value", "-"},
                                                                    {"tags", "grp:a"},
                                                                    {"tag", "grp:a"}});
  const auto* const found =
      std::ranges::find(kValues, parameter, [](const auto& row) { return row.first; });
  return found == kValues.end() ? "1" : found->second;
}

std::optional<Problem> add_ids(const std::vector<json::Json>& ids, Parameters& parameters) {
  std::string list;
  for (const json::Json& id : ids) {
    if (!id.number()) return bad_parameter(kIds, "has an element that is no whole number");
    list += fmt::format("{}{}", list.empty() ? "" : ",", *id.number());
  }
  parameters.emplace_back(kIds, std::move(list));
  return std::nullopt;
}

// True: the text can be the rest of a line: several words.
bool is_rest(std::string_view text) {
  return !text.empty() && text.front() != ' ' && std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f;
  });
}

bool may_wait(std::string_view seconds) {
  const auto number = parse_number<std::uint64_t>(seconds);
  return number && *number <= kMostWaitSeconds;
}

// The words of a line, one after the other.
class LineMaker {
 public:
  LineMaker(const Operation& operation, const Parameters& parameters, std::uint64_t bytes)
      : operation_(operation), parameters_(parameters), bytes_(bytes) {}

  void add(std::string_view word) { line_.append(line_.empty() ? "" : " ").append(word); }
  void add(const Placeholder& placeholder);

  std::variant<std::string, Problem> take();

 private:
  const Operation& operation_;
  const Parameters& parameters_;
  std::uint64_t bytes_;
  std::string line_;
  std::string_view missing_;  // an optional parameter that is not given
  std::optional<Problem> problem_;
};

void LineMaker::add(const Placeholder& placeholder) {
  const std::string_view name = placeholder.name;
  if (name == "bytes") return add(fmt::to_string(bytes_));
  const std::string* given = find(parameters_, name);
  if (given == nullptr && placeholder.default_value) return add(*placeholder.default_value);
  if (given == nullptr && placeholder.optional) {
    if (missing_.empty() && placeholder.prefix.empty()) missing_ = name;
    return;
  }
  if (given == nullptr) {
    problem_ = bad_parameter(name, "is missing");
  } else if (!missing_.empty()) {
    problem_ = bad_parameter(missing_, fmt::format("is missing: {} needs it", name));
  } else if (name == kText && !given->empty()) {
    add(std::string(placeholder.prefix) + percent_encoded(*given));
  } else if (!(name == kTags ? is_rest(*given) : is_word(*given))) {
    problem_ = bad_parameter(name, "is not a word");
  } else if (name == operation_.waits && !may_wait(*given)) {
    problem_ = bad_parameter(
        name, fmt::format("is not a number of seconds from 0 to {}", kMostWaitSeconds));
  } else {
    add(std::string(placeholder.prefix) + *given);
  }
}

std::variant<std::string, Problem> LineMaker::take() {
  if (problem_) return *std::move(problem_);
  return std::move(line_) + "\r\n";
}

}  // namespace

std::span<const Operation> operations() {
  return kOperations;
}

const commands::Command* command_of(const Operation& operation) {
  return commands::find_command(operation.line.substr(0, operation.line.find(' ')));
}

Access access_of(const Operation& operation) {
  const commands::Command* command = command_of(operation);
  if (command == nullptr) return operation.access;
  const bool shows = command->shows_alone && operation.method == Method::get;
  return shows ? Access::inspect : command->access;
}

const ReplyProblem* find_problem(const Operation& operation, std::string_view word) {
  return word == operation.success ? nullptr : find_problem(word);
}

Routed route(std::optional<Method> method, std::span<const std::string> segments) {
  Routed routed;
  Parameters found;
  for (const Operation& operation : kOperations) {
    if (!matches(operation.path, segments, found)) continue;
    if (operation.method == method) {
      routed.operation = &operation;
      routed.path = std::move(found);
      return routed;
    }
    routed.allowed.append(routed.allowed.empty() ? "" : ", ").append(name_of(operation.method));
  }
  return routed;
}

std::vector<Parameter> parameters_of(const Operation& operation) {
  std::vector<Parameter> all;
  std::string_view path = operation.path;
  for (std::size_t begin = path.find('{'); begin != std::string_view::npos;
       begin = path.find('{')) {
    path.remove_prefix(begin + 1);
    all.push_back({.name = path.substr(0, path.find('}')), .in_path = true, .needed = true});
  }
  const bool is_held = is_of_reservation(operation.kind);
  const auto add = [&](const Placeholder& word) {
    const bool has_own_id = is_held || operation.kind == Kind::each;
    const bool is_given = word.name == "bytes" || (has_own_id && word.name == "id");
    if (is_given || std::ranges::find(all, word.name, &Parameter::name) != all.end()) return;
    // A reservation knows the priority of its job.
    const bool has_value = word.default_value || word.optional || (is_held && word.name == "pri");
    all.push_back({.name = word.name, .needed = !has_value, .default_value = word.default_value});
  };
  for_each_word(operation.line, Overloaded{add, [](std::string_view) {}});
  if (operation.kind == Kind::each) all.push_back({.name = "ids", .needed = true});
  if (operation.kind == Kind::tubes) {
    for (const std::string_view name : {"filter", "sort", "order"}) all.push_back({.name = name});
  }
  if (operation.kind == Kind::jobs) {
    for (const std::string_view name : {"sort", "order"}) all.push_back({.name = name});
  }
  if (operation.kind == Kind::history) {
    all.push_back({.name = "span", .default_value = "hour"});
    all.push_back({.name = "tube"});
  }
  return all;
}

std::optional<Problem> check_names(const Operation& operation, const Parameters& parameters) {
  const std::vector<Parameter> known = parameters_of(operation);
  for (const auto& parameter : parameters) {
    const std::string& name = parameter.first;
    if (std::ranges::find(known, std::string_view(name), &Parameter::name) == known.end())
      return bad_parameter(name, "is unknown");
    if (find(parameters, name) != &parameter.second) return bad_parameter(name, "is given twice");
  }
  return std::nullopt;
}

std::variant<std::string, Problem> line_of(const Operation& operation, const Parameters& parameters,
                                           std::uint64_t bytes) {
  LineMaker maker(operation, parameters, bytes);
  for_each_word(operation.line, [&](const auto& word) { maker.add(word); });
  return maker.take();
}

bool is_line_of(const Operation& operation, std::string_view line) {
  const commands::Command* command = command_of(operation);
  if (command == nullptr) return false;
  // A line that is too long is skipped, and the body after it would be run as commands.
  if (command->begin_body != nullptr && line.size() > command->line_bytes) return false;
  line = line.substr(0, line.find('\r'));
  line.remove_prefix(std::min(command->name.size() + 1, line.size()));
  if (line.empty() && command->text_rule == commands::TextRule::none) return true;
  commands::ArgumentStorage arguments;
  return command->parse(line, arguments);
}

Problem bad_format(const Operation& operation, const Parameters& parameters) {
  Problem problem = problem_of(protocol::word::kBadFormat);
  const auto is_taken = [&](const Parameters& tried) {
    const auto line = line_of(operation, tried);
    const auto* text = std::get_if<std::string>(&line);
    return text != nullptr && is_line_of(operation, *text);
  };
  if (is_taken(parameters)) return problem;
  for (const auto& [name, value] : parameters) {
    Parameters tried = parameters;
    std::ranges::find(tried, name, &Parameters::value_type::first)->second = valid_value(name);
    if (!is_taken(tried)) continue;
    // Another value of either parameter would do.
    if (!problem.parameter.empty()) {
      problem.parameter.clear();
      return problem;
    }
    problem.parameter = name;
  }
  if (!problem.parameter.empty()) {
    problem.detail = fmt::format("the parameter {} is not of the form: {}", problem.parameter,
                                 form_of(operation, problem.parameter));
  }
  return problem;
}

bool is_time(std::string_view parameter) {
  constexpr auto kTimes = std::to_array<std::string_view>(
      {"delay", "ttr", "seconds", "timeout", "age_over", "age_below"});
  return std::ranges::find(kTimes, parameter) != kTimes.end();
}

void remove_units(Parameters& parameters) {
  for (auto& [name, time] : parameters) {
    const bool has_unit = !time.empty() && (time.back() < '0' || time.back() > '9');
    if (!is_time(name) || !has_unit || time.ends_with("ms")) continue;
    const auto seconds = parse_quantity<std::uint64_t>(time, kTimeUnits, kSecondSize, kSecondSize);
    if (seconds && seconds->fits) time = fmt::to_string(seconds->number);
  }
}

bool is_word(std::string_view text) {
  return text.find(' ') == std::string_view::npos && is_rest(text);
}

std::optional<Problem> add_value(const std::string& name, const json::Json& value,
                                 Parameters& parameters) {
  if (const std::string* word = value.text()) {
    parameters.emplace_back(name, *word);
  } else if (const auto number = value.number()) {
    parameters.emplace_back(name, fmt::to_string(*number));
  } else {
    return bad_parameter(name, "is neither text nor a whole number");
  }
  return std::nullopt;
}

std::optional<Problem> add_json(std::string_view text, Parameters& parameters) {
  const auto object = json::Json::parse_document(text);
  if (!object || !object->is_object()) return bad_request("the body is no JSON object");
  for (const auto& [name, value] : object->members()) {
    const bool is_list = name == kIds && value.elements() != nullptr;
    auto problem =
        is_list ? add_ids(*value.elements(), parameters) : add_value(name, value, parameters);
    if (problem) return problem;
  }
  return std::nullopt;
}

std::string_view name_of(Method method) {
  return kMethods[static_cast<std::size_t>(method)];
}

std::optional<Method> method_named(std::string_view name) {
  const auto found = std::ranges::find(kMethods, name);
  if (found == kMethods.end()) return std::nullopt;
  return static_cast<Method>(found - kMethods.begin());
}

}  // namespace tubed::api
