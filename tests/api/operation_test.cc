#include "api/operation.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/overloaded.h"
#include "commands/table.h"
#include "tests/api/api.h"

namespace tubed::api {
namespace {

using Segments = std::vector<std::string>;

// A value that the command of the operation takes.
std::string sample(std::string_view name) {
  constexpr auto kSamples =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"tube", "mail"},
                                                                    {"to", "later"},
                                                                    {"state", "buried"},
                                                                    {"key", "max-attempts"},
                                                                    {"group", "batch"},
                                                                    {"tags", "idp:a con:b"},
                                                                    {"tag", "grp:a"},
                                                                    {"token", "cafe"},
                                                                    {"sort", "ready"},
                                                                    {"order", "desc"}});
  const auto* const found =
      std::ranges::find(kSamples, name, &std::pair<std::string_view, std::string_view>::first);
  return std::string(found == kSamples.end() ? "7" : found->second);
}

Parameters samples_of(const Operation& operation, bool all) {
  Parameters parameters;
  for (const Parameter& parameter : parameters_of(operation)) {
    if (all || parameter.needed) parameters.emplace_back(parameter.name, sample(parameter.name));
  }
  if (operation.kind == Kind::each) parameters.emplace_back("id", "7");
  if (is_of_reservation(operation.kind)) {
    parameters.emplace_back("id", "7");
    if (find(parameters, "pri") == nullptr) parameters.emplace_back("pri", "3");
  }
  return parameters;
}

std::string line(const Operation& operation, Parameters parameters, std::uint64_t bytes = 0) {
  remove_units(parameters);
  const auto made = line_of(operation, parameters, bytes);
  const auto* text = std::get_if<std::string>(&made);
  return text == nullptr ? "refused: " + std::get<Problem>(made).detail : *text;
}

const commands::Command& row_of(const Operation& operation) {
  const commands::Command* command = command_of(operation);
  REQUIRE(command != nullptr);
  return *command;
}

bool parses(const commands::Command& command, std::string_view line) {
  REQUIRE(line.ends_with("\r\n"));
  line.remove_suffix(2);
  const std::size_t space = line.find(' ');
  const std::string_view text = space == std::string_view::npos ? "" : line.substr(space + 1);
  if (text.empty() && command.text_rule == commands::TextRule::none) return true;
  commands::ArgumentStorage storage;
  return command.parse(text, storage);
}

TEST_CASE("the table is consistent") {
  std::set<std::string_view> ids;
  std::set<std::string> targets;
  for (const Operation& operation : operations()) {
    CAPTURE(operation.id);
    CHECK(ids.insert(operation.id).second);
    CHECK(targets.insert(std::string(name_of(operation.method)).append(operation.path)).second);
    CHECK(operation.path.starts_with('/'));
    CHECK((operation.line.empty() || operation.access == Access::any));
    CHECK((!operation.line.empty() || !operation.summary.empty()));
    CHECK((reserves_jobs(operation.kind) || operation.waits.empty() ||
           operation.method == Method::get));
    if (operation.waits.empty()) continue;
    const auto all = parameters_of(operation);
    CHECK(std::ranges::find(all, operation.waits, &Parameter::name) != all.end());
  }
}

TEST_CASE("an operation has the row of its command") {
  const auto find = [](std::string_view id) -> const Operation& {
    return *std::ranges::find(operations(), id, &Operation::id);
  };
  CHECK(command_of(find("getServer")) == commands::find_command("stats"));
  CHECK(command_of(find("kickTube")) == commands::find_command("kick-tube"));
  CHECK(command_of(find("getHistory")) == nullptr);
  for (const Operation& operation : operations())
    CHECK((command_of(operation) == nullptr) == operation.line.empty());
}

TEST_CASE("a word that refuses commands is the success of one operation") {
  for (const Operation& operation : operations()) {
    CAPTURE(operation.id);
    CHECK((find_problem(operation, "DRAINING") == nullptr) == (operation.id == "drain"));
    CHECK(find_problem(operation, "DENIED") == find_problem("DENIED"));
    CHECK(find_problem(operation, "KICKED") == nullptr);
  }
}

TEST_CASE("the method of an operation follows from the effect of its command") {
  for (const Operation& operation : operations()) {
    if (operation.line.empty()) continue;
    CAPTURE(operation.id);
    const commands::Command& command = row_of(operation);
    // An operation that emits facts or begins a reservation is no GET: http.api = "read" rests on
    // it.
    if (command.may_emit_facts && operation.id != "getPolicy")
      CHECK(operation.method != Method::get);
    if (command.access == Access::work || command.access == Access::produce)
      CHECK(operation.method != Method::get);
    if (command.access == Access::admin && operation.id != "getPolicy")
      CHECK(operation.method != Method::get);
  }
}

TEST_CASE("the line of each operation is one that its command takes") {
  for (const Operation& operation : operations()) {
    if (operation.line.empty()) continue;
    CAPTURE(operation.id);
    const commands::Command& command = row_of(operation);
    for (const bool all : {false, true}) {
      const std::string made = line(operation, samples_of(operation, all), 5);
      CAPTURE(made);
      CHECK(parses(command, made));
    }
    CHECK(has_job_body(operation.kind) == (command.begin_body != nullptr));
  }
}

TEST_CASE("each placeholder is an argument of its command") {
  for (const Operation& operation : operations()) {
    if (operation.line.empty()) continue;
    CAPTURE(operation.id);
    std::string arguments;
    for (const auto& argument : row_of(operation).arguments)
      arguments.append("<").append(argument.name).append(">");
    for_each_word(operation.line,
                  Overloaded{[&](const Placeholder& word) {
                               // A wait is a timeout here, since it is no time of the job.
                               const std::string name(!word.prefix.empty()     ? "filters"
                                                      : word.name == "timeout" ? "seconds"
                                                                               : word.name);
                               CAPTURE(name);
                               CHECK(arguments.find('<' + name + '>') != std::string::npos);
                             },
                             [](std::string_view) {}});
  }
}

TEST_CASE("each operation is found by its method and path") {
  for (const Operation& operation : operations()) {
    CAPTURE(operation.id);
    std::string target;
    std::string_view rest = operation.path;
    while (!rest.empty()) {
      const std::string_view part = rest.substr(1, rest.substr(1).find('/'));
      rest.remove_prefix(part.size() + 1);
      target += '/';
      target += part.starts_with('{') ? "a%2Fb" : part;
    }
    const auto parsed = parse_target(target);
    REQUIRE(parsed);
    const Routed routed = route(operation.method, parsed->segments);
    CHECK(routed.operation == &operation);
    for (const auto& [name, value] : routed.path) CHECK(value == "a/b");
    Segments longer = parsed->segments;
    longer.emplace_back("");
    CHECK(route(operation.method, longer).operation == nullptr);
  }
}

TEST_CASE("names of tubes that look like parts of paths are found") {
  const Routed jobs = route(Method::get, Segments{"tubes", "jobs", "jobs"});
  REQUIRE(jobs.operation != nullptr);
  CHECK(jobs.operation->id == "listJobs");
  CHECK(jobs.path == Parameters{{"tube", "jobs"}});
  const Routed slash = route(Method::post, Segments{"tubes", "a/b", "kick"});
  REQUIRE(slash.operation != nullptr);
  CHECK(slash.operation->id == "kickTube");
  CHECK(slash.path == Parameters{{"tube", "a/b"}});
  const Routed tube = route(Method::get, Segments{"tubes", "a/kick"});
  REQUIRE(tube.operation != nullptr);
  CHECK(tube.operation->id == "getTube");
  const Routed braces = route(Method::get, Segments{"tubes", "{tube}"});
  CHECK(braces.path == Parameters{{"tube", "{tube}"}});
}

TEST_CASE("a path without an operation, and a method without one") {
  for (const Segments& segments :
       {Segments{}, Segments{""}, Segments{"tubes", ""}, Segments{"tubes", "a", "b", "c"},
        Segments{"Server"}, Segments{"server", ""}, Segments{"tubes", "a", "policy", ""},
        Segments{"nothing"}}) {
    const Routed routed = route(Method::get, segments);
    CHECK(routed.operation == nullptr);
    CHECK(routed.allowed.empty());
  }
  CHECK(route(Method::put, Segments{"drain"}).allowed == "POST, DELETE");
  CHECK(route(Method::put, Segments{"drain"}).operation == nullptr);
  CHECK(route(Method::get, Segments{"tubes", "a", "kick"}).allowed == "POST");
  CHECK(route(Method::post, Segments{"jobs", "7"}).allowed == "GET, DELETE");
  CHECK(route(std::nullopt, Segments{"tubes", "a", "jobs"}).allowed == "GET, POST");
}

TEST_CASE("methods have their names") {
  for (const std::string_view name : {"GET", "POST", "PUT", "DELETE"}) {
    const auto method = method_named(name);
    REQUIRE(method);
    CHECK(name_of(*method) == name);
  }
  for (const std::string_view name : {"", "get", "HEAD", "PATCH", "OPTIONS", "GET "})
    CHECK(!method_named(name));
}

TEST_CASE("parameters that are not given have their defaults or are left out") {
  const Operation& kick = operation_of("kickTube");
  CHECK(line(kick, {{"tube", "a"}}) == "kick-tube a 100\r\n");
  CHECK(line(kick, {{"tube", "a"}, {"bound", "7"}}) == "kick-tube a 7\r\n");
  CHECK(line(kick, {{"tube", "a"}, {"state", "buried"}}) == "kick-tube a 100 buried\r\n");
  const Operation& clear = operation_of("clearTube");
  CHECK(line(clear, {{"tube", "a"}}) == "flush-tube a\r\n");
  CHECK(line(clear, {{"tube", "a"}, {"state", "ready"}}) == "flush-tube a ready\r\n");
  CHECK(line(clear, {{"tube", "a"}, {"bound", "5"}}) ==
        "refused: the parameter state is missing: bound needs it");
  const Operation& move = operation_of("moveJobs");
  CHECK(line(move, {{"tube", "a"}, {"state", "ready"}}) == "refused: the parameter to is missing");
  const Operation& put = operation_of("putJob");
  CHECK(line(put, {{"tube", "a"}}, 12) == "put-in-tube a 1024 0 60 12\r\n");
  CHECK(line(put, {{"tube", "a"}, {"tags", "idp:x grp:y"}, {"delay", "500ms"}}, 0) ==
        "put-in-tube a 1024 500ms 60 0 idp:x grp:y\r\n");
  CHECK(line(operation_of("removePolicy"), {{"tube", "a"}, {"key", "ttl"}}) ==
        "tube-policy a ttl -\r\n");
  CHECK(line(operation_of("getServer"), {}) == "stats\r\n");
}

TEST_CASE("each filter is left out by itself, and a text is encoded") {
  const Operation& list = operation_of("listJobs");
  CHECK(line(list, {{"tube", "a"}}) == "list-jobs a ready 0 100\r\n");
  CHECK(line(list, {{"tube", "a"}, {"pri_below", "5"}, {"age_over", "7"}}) ==
        "list-jobs a ready 0 100 age>7 pri<5\r\n");
  CHECK(line(list, {{"tube", "a"}, {"tag", "con:k:2"}, {"from", "9"}, {"failures_over", "2"}}) ==
        "list-jobs a ready 9 100 failures>2 tag:con:k:2\r\n");
  CHECK(line(list, {{"tube", "a"}, {"q", "100 % sure\n\xc3\xa9+"}}) ==
        "list-jobs a ready 0 100 body:100%20%25%20sure%0A\xc3\xa9+\r\n");
  CHECK(line(list, {{"tube", "a"}, {"q", ""}}) == "refused: the parameter q is not a word");
  CHECK(line(list, {{"tube", "a"}, {"tag", "a b"}}) == "refused: the parameter tag is not a word");
  CHECK(line(list, {{"tube", "a"}, {"age_over", ""}}).starts_with("refused"));
}

TEST_CASE("a time may have a unit") {
  const Operation& put = operation_of("putJob");
  const auto words = [&](const std::string& delay, const std::string& ttr) {
    return line(put, {{"tube", "a"}, {"delay", delay}, {"ttr", ttr}}, 5);
  };
  CHECK(words("500ms", "90s") == "put-in-tube a 1024 500ms 90 5\r\n");
  CHECK(words("5m", "2h") == "put-in-tube a 1024 300 7200 5\r\n");
  CHECK(words("1d", "0s") == "put-in-tube a 1024 86400 0 5\r\n");
  CHECK(words("7", "0") == "put-in-tube a 1024 7 0 5\r\n");
  // The command refuses these.
  for (const std::string time : {"1x", "s", "-1s", "1.5s", "1S", "99999999999999999999d", "1ss"}) {
    CAPTURE(time);
    CHECK(words(time, "1s") == "put-in-tube a 1024 " + time + " 1 5\r\n");
  }
  CHECK(line(operation_of("pauseTube"), {{"tube", "a"}, {"delay", "1m"}}) == "pause-tube a 60\r\n");
  CHECK(line(operation_of("listJobs"), {{"tube", "a"}, {"age_over", "1h"}, {"age_below", "1d"}}) ==
        "list-jobs a ready 0 100 age>3600 age<86400\r\n");
  CHECK(line(operation_of("waitForJob"), {{"id", "7"}, {"seconds", "50s"}}) == "wait 50 7\r\n");
  // Other numbers have no unit.
  CHECK(line(operation_of("kickTube"), {{"tube", "a"}, {"bound", "1m"}}) == "kick-tube a 1m\r\n");
}

TEST_CASE("a wait is bounded, and in whole seconds") {
  const Operation& reserve = operation_of("reserve");
  CHECK(line(reserve, {{"tube", "a"}}) == "reserve-with-timeout 0\r\n");
  CHECK(line(reserve, {{"timeout", "50"}}) == "reserve-with-timeout 50\r\n");
  CHECK(line(reserve, {{"timeout", "50s"}}) == "reserve-with-timeout 50\r\n");
  for (const std::string_view seconds :
       {"51", "51s", "1m", "-1", "+1", "-1s", "500ms", "4294967296", "x"}) {
    CAPTURE(seconds);
    CHECK(line(reserve, {{"timeout", std::string(seconds)}}) ==
          "refused: the parameter timeout is not a number of seconds from 0 to 50");
  }
  CHECK(line(operation_of("waitForJob"), {{"id", "7"}, {"seconds", "51"}}).starts_with("refused"));
}

TEST_CASE("no value adds a word or a line") {
  std::vector<std::string> values = {"",           " ",        "a b", " a",  "a ",
                                     "a\r\ndrain", "a\ndrain", "a\r", "\r\n"};
  for (int byte = 0; byte < 0x20; ++byte)
    values.push_back(std::string("a") + static_cast<char>(byte) + "b");
  values.emplace_back("\x7f");
  for (const Operation& operation : operations()) {
    if (operation.line.empty()) continue;
    CAPTURE(operation.id);
    const Parameters samples = samples_of(operation, true);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      bool is_in_line = false;
      for_each_word(operation.line, Overloaded{[&](const Placeholder& word) {
                                                 is_in_line |= word.name == samples[i].first;
                                               },
                                               [](std::string_view) {}});
      if (!is_in_line) continue;
      for (const std::string& value : values) {
        Parameters parameters = samples;
        parameters[i].second = value;
        const std::string made = line(operation, parameters);
        CAPTURE(made);
        if (made.starts_with("refused")) continue;
        CHECK((samples[i].first == "tags" || samples[i].first == "q"));
        CHECK(made.find_first_of("\r\n") == made.size() - 2);
        CHECK(made.find('\0') == std::string::npos);
      }
    }
  }
}

TEST_CASE("a word has no space and no control character") {
  CHECK(is_word("a"));
  CHECK(is_word("a/b;c:d{}\"\\"));
  CHECK(is_word("\xc3\xa9\xff"));
  CHECK(!is_word(""));
  CHECK(!is_word("a b"));
  CHECK(!is_word("\t"));
  CHECK(!is_word("\x7f"));
}

std::string names(const Operation& operation, const Parameters& parameters) {
  const auto problem = check_names(operation, parameters);
  return problem ? problem->detail : "";
}

TEST_CASE("a parameter that an operation does not have, or twice, is a problem") {
  const Operation& kick = operation_of("kickTube");
  CHECK(names(kick, {{"tube", "a"}, {"bound", "1"}, {"state", "buried"}}).empty());
  CHECK(names(kick, {{"tube", "a"}, {"count", "1"}}) == "the parameter count is unknown");
  CHECK(names(kick, {{"tube", "a"}, {"tube", "b"}}) == "the parameter tube is given twice");
  CHECK(names(kick, {{"bound", "1"}, {"bound", "1"}}) == "the parameter bound is given twice");
  CHECK(names(kick, {{"", ""}}) == "the parameter  is unknown");
  CHECK(names(kick, {{std::string(5000, 'a'), ""}}).size() < 100);
  CHECK(!names(kick, {{"{tube}", "a"}}).empty());
  CHECK(!names(operation_of("setPolicy"), {{"tube}/policy/{key", "a"}}).empty());
  CHECK(!names(operation_of("putJob"), {{"bytes", "1"}}).empty());
  CHECK(!names(operation_of("getReservation"), {{"id", "1"}}).empty());
  CHECK(!names(operation_of("touchReservation"), {{"pri", "1"}}).empty());
  CHECK(!names(operation_of("getServer"), {{"a", "1"}}).empty());
  CHECK(names(operation_of("listTubes"), {{"filter", ""}, {"sort", "ready"}, {"order", "asc"}})
            .empty());
  CHECK(!names(operation_of("listJobs"), {{"filter", ""}}).empty());
}

TEST_CASE("a problem names the parameter that is wrong") {
  const auto named = [](const char* operation, const Parameters& parameters) {
    const Operation& row = operation_of(operation);
    if (const auto problem = check_names(row, parameters)) return problem->parameter;
    const auto made = line_of(row, parameters, 0);
    const auto* problem = std::get_if<Problem>(&made);
    return problem == nullptr ? std::string("none") : problem->parameter;
  };
  CHECK(named("kickTube", {{"tube", "a"}, {"count", "1"}}) == "count");
  CHECK(named("kickTube", {{"tube", "a"}, {"tube", "b"}}) == "tube");
  CHECK(named("kickTube", {{"tube", "a b"}, {"bound", "1"}}) == "tube");
  CHECK(named("kickTube", {{std::string(5000, 'a'), ""}}) == std::string(64, 'a'));
  CHECK(named("moveJobs", {{"tube", "a"}, {"state", "ready"}}) == "to");
  CHECK(named("kickTube", {{"tube", "a"}, {"bound", "1"}}) == "none");
  Parameters parameters;
  CHECK(add_json(R"({"pri": [1]})", parameters)->parameter == "pri");
  CHECK(add_json("1", parameters)->parameter.empty());
  CHECK(to_json(bad_parameter("pri", "is wrong")) ==
        R"({"type":"urn:tubed:problem:bad-request","title":"Bad request","status":400,)"
        R"("detail":"the parameter pri is wrong","parameter":"pri"})"
        "\n");
  CHECK(to_json(not_the_leader("not here", "b"))
            .ends_with(R"("detail":"not here","leader":"b"})"
                       "\n"));
  CHECK(to_json(not_the_leader("not here", "")).ends_with("\"detail\":\"not here\"}\n"));
}

TEST_CASE("the parameters of an operation") {
  const auto release = parameters_of(operation_of("releaseReservation"));
  REQUIRE(release.size() == 3);
  CHECK((release[0].name == "token" && release[0].in_path && release[0].needed));
  CHECK((release[1].name == "pri" && !release[1].needed && !release[1].default_value));
  CHECK((release[2].name == "delay" && release[2].default_value == "0"));
  const auto move = parameters_of(operation_of("moveJob"));
  REQUIRE(move.size() == 4);
  CHECK((move[1].name == "tube" && !move[1].in_path && move[1].needed));
  CHECK((move[2].name == "pri" && !move[2].needed));
  CHECK(parameters_of(operation_of("getServer")).empty());
  CHECK(parameters_of(operation_of("reserve")).size() == 2);
}

std::string added(std::string_view text) {
  Parameters parameters = {{"tube", "a"}};
  if (const auto problem = add_json(text, parameters)) return "refused";
  std::string all;
  for (const auto& [name, value] : parameters)
    all.append(name).append("=").append(value).append(";");
  return all;
}

TEST_CASE("parameters come from an object of texts and whole numbers") {
  CHECK(added("{}") == "tube=a;");
  CHECK(added(R"( {"bound": 5, "state": "buried"} )") == "tube=a;bound=5;state=buried;");
  CHECK(added(R"({"a":18446744073709551615,"b":0})") == "tube=a;a=18446744073709551615;b=0;");
  CHECK(added(R"({"a":1,"a":2})") == "tube=a;a=2;");
  CHECK(added(R"({"tube":"b"})") == "tube=a;tube=b;");  // which check_names() refuses
  CHECK(added(R"({"a":"x\r\ny"})") == "tube=a;a=x\r\ny;");
  for (const std::string_view text : {"",
                                      "null",
                                      "5",
                                      "\"a\"",
                                      "[]",
                                      "[1]",
                                      "{",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1}x",
                                      "{a:1}",
                                      "{'a':1}",
                                      "{\"a\":1,}",
                                      "{\"a\":-1}",
                                      "{\"a\":1.0}",
                                      "{\"a\":1e3}",
                                      "{\"a\":18446744073709551616}",
                                      "{\"a\":null}",
                                      "{\"a\":true}",
                                      "{\"a\":[]}",
                                      "{\"a\":{}}",
                                      "{\"a\":\"\xff\"}",
                                      "{\"a\":\"\n\"}",
                                      "a=1"}) {
    CAPTURE(text);
    CHECK(added(text) == "refused");
  }
  const std::string deep = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  CHECK(added(deep) == "refused");
}

}  // namespace
}  // namespace tubed::api
