#include "options/parse.h"

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/options/words.h"

namespace tubed::options_test {
namespace {

using options::AfterArguments;
using options::option;
using options::OptionRow;
using options::Parsed;
using Words = std::vector<std::string>;

struct Options {
  std::vector<std::string> tubes;
  std::optional<std::string> body;
  std::string server = "here";
  std::uint32_t priority = 1024;
  std::chrono::milliseconds delay{};
  std::string state;
  std::vector<std::uint32_t> codes;
  bool json = false;
  bool lines = false;
  bool quiet = false;
};

constexpr std::array<std::string_view, 2> kStates{"ready", "buried"};
constexpr std::array kRows{
    options::kHelpOption,
    option<&Options::body>({.names = "BODY", .type = options::text("BODY")}),
    option<&Options::tubes>({.names = "-t,--tube,TUBE", .type = options::text("TUBE")}),
    option<&Options::server>(
        {.names = "-s,--server", .type = options::text("ADDRESS"), .env = "SERVER"}),
    option<&Options::priority>({.names = "-p,--priority", .type = options::count(0, 9)}),
    option<&Options::delay>(
        {.names = "--delay", .type = options::milliseconds(), .needs = "--lines"}),
    option<&Options::state>({.names = "--state", .type = options::choice("STATE", kStates)}),
    option<&Options::codes>(
        {.names = "--codes", .type = options::count(0, 255, "CODES"), .separator = ','}),
    option<&Options::json>({.names = "--json"}),
    option<&Options::lines>({.names = "-l,--lines", .excludes = {"--state"}}),
    option<&Options::quiet>({.names = "-q,--quiet"}),
};

const char* server_in_environment(const char* name) {
  return std::strcmp(name, "SERVER") == 0 ? "there" : nullptr;
}
const char* empty_environment(const char*) {
  return "";
}

Options accept(const Words& words, options::Environment environment = no_environment) {
  Options given;
  const auto parsed = options::parse(kRows, pointers(words), environment, &given);
  CHECK_MESSAGE(parsed.ok(), (parsed ? "" : parsed.error().message));
  return given;
}

std::string refuse(const Words& words, options::Environment environment = no_environment) {
  Options given;
  const auto parsed = options::parse(kRows, pointers(words), environment, &given);
  CHECK(given.server == "here");
  CHECK(given.tubes.empty());
  return parsed ? "accepted" : parsed.error().message;
}

TEST_CASE("a member keeps its default until its option is given") {
  const auto none = accept({});
  CHECK(none.priority == 1024);
  CHECK(!none.body);
  CHECK(!none.json);
  const auto given = accept({"x", "-p5", "--json", "--lines", "--delay", "1500ms"});
  CHECK(given.body == "x");
  CHECK(given.priority == 5);
  CHECK(given.json);
  CHECK(given.delay == std::chrono::milliseconds(1500));
}

TEST_CASE("arguments go to the positional rows in turn, the last of which takes all others") {
  CHECK(accept({"x"}).tubes.empty());
  CHECK(accept({"x", "a", "b"}).tubes == Words{"a", "b"});
  CHECK(accept({"x", "-t", "a", "b", "--tube=c"}).tubes == Words{"a", "b", "c"});
  CHECK(accept({"-t", "a", "x"}).body == "x");
  CHECK(accept({"--", "-l"}).body == "-l");
  CHECK(accept({"-5"}).body == "-5");
  CHECK(accept({""}).body == "");
}

TEST_CASE("a flag is set by its name, or by a truth value") {
  for (const auto* word :
       {"--json", "--json=", "--json=true", "--json=yes", "--json=on", "--json=1"}) {
    CHECK(accept({word}).json);
  }
  for (const auto* word : {"--json=false", "--json=no", "--json=off", "--json=0"}) {
    CHECK(!accept({"--json", word}).json);
  }
  CHECK(accept({"--json=no", "--json"}).json);
  CHECK(refuse({"--json=maybe"}) == "--json: \"maybe\" is not true or false");
  CHECK(accept({"-lq"}).quiet);
}

TEST_CASE("a separator divides a word into values") {
  using Codes = std::vector<std::uint32_t>;
  CHECK(accept({"--codes", "1,2", "--codes=3"}).codes == Codes{1, 2, 3});
  CHECK(accept({"--codes", ",1,,2,"}).codes == Codes{1, 2});
  CHECK(refuse({"--codes", ""}) == "--codes: \"\" is not a whole number from 0 to 255");
  CHECK(refuse({"--codes", ","}) == "--codes: \"\" is not a whole number from 0 to 255");
  CHECK(refuse({"--codes", "1,256"}) == "--codes: \"256\" is not a whole number from 0 to 255");
}

TEST_CASE("the environment has the value of an option that is not given") {
  CHECK(accept({}, server_in_environment).server == "there");
  CHECK(accept({"-s", "x"}, server_in_environment).server == "x");
  CHECK(accept({}, empty_environment).server == "here");
}

TEST_CASE("a mistake is named with the option, by its long name") {
  CHECK(refuse({"-p", "x"}) == "--priority: \"x\" is not a whole number from 0 to 9");
  CHECK(refuse({"-p"}) == "--priority: 1 required N missing");
  CHECK(refuse({"--state"}) == "--state: 1 required STATE:{ready,buried} missing");
  CHECK(refuse({"--state="}) == "--state:  not in {ready,buried}");
  CHECK(refuse({"--priorty=5"}) == "there is no option --priorty (did you mean --priority?)");
  CHECK(refuse({"-lx"}) == "there is no option -x");
}

TEST_CASE("an option of one value is given once") {
  CHECK(refuse({"-p", "1", "--priority", "2"}) == "--priority may be given only once");
  CHECK(refuse({"-s", "x", "-sy"}) == "--server may be given only once");
}

TEST_CASE("options need and exclude others") {
  CHECK(refuse({"--delay", "5"}) == "--delay requires --lines");
  CHECK(accept({"--delay", "5", "-l"}).lines);
  CHECK(refuse({"-l", "--state", "ready"}) == "--state excludes --lines");
  CHECK(refuse({"--state", "ready", "-l"}) == "--state excludes --lines");
}

struct MoveOptions {
  std::string from;
  std::string to;
  std::string key;
};
constexpr std::array kMoveRows{
    options::kHelpOption,
    option<&MoveOptions::from>({.names = "FROM", .type = options::text("TUBE"), .required = true}),
    option<&MoveOptions::to>({.names = "TO", .type = options::text("TUBE"), .required = true}),
    option<&MoveOptions::key>({.names = "--key", .type = options::text("KEY"), .required = true}),
};

std::string refuse_move(const Words& words) {
  MoveOptions given;
  const auto parsed = options::parse(kMoveRows, pointers(words), no_environment, &given);
  return parsed ? "accepted" : parsed.error().message;
}

TEST_CASE("what is required is named as the help names it") {
  CHECK(refuse_move({}) == "FROM is missing");
  CHECK(refuse_move({"a"}) == "TO is missing");
  CHECK(refuse_move({"a", "b"}) == "--key is missing");
  CHECK(refuse_move({"a", "b", "--key=c"}) == "accepted");
}

TEST_CASE("arguments that are too many keep their order") {
  CHECK(refuse_move({"a", "b", "--key=k", "c"}) == "there is an argument too many: c");
  CHECK(refuse_move({"a", "b", "c", "--key=k", "-5"}) == "there are arguments too many: c -5");
}

TEST_CASE("of several mistakes, the first in the order of parse() is named") {
  CHECK(refuse_move({"a", "b", "c", "--nonsense"}) == "there is no option --nonsense");
  CHECK(refuse_move({"--nonsense", "--more"}) == "there is no option --nonsense");
  CHECK(refuse_move({"--nonsense", "--key"}) == "--key: 1 required KEY missing");
  CHECK(refuse({"-p", "x", "--nonsense"}) == "--priority: \"x\" is not a whole number from 0 to 9");
  CHECK(refuse({"--state", "x", "-p", "x"}) ==
        "--priority: \"x\" is not a whole number from 0 to 9");
}

TEST_CASE("help is wanted even if the rest is wrong, and nothing is assigned") {
  for (const auto& words :
       {Words{"-h"}, {"--help"}, {"-lh"}, {"--nonsense", "--help"}, {"-p", "x", "-h"}}) {
    Options given;
    auto parsed = options::parse(kRows, pointers(words), no_environment, &given);
    REQUIRE(parsed.ok());
    CHECK(parsed->wants_help);
    CHECK(!given.lines);
  }
  CHECK(refuse({"-h", "-p"}) == "--priority: 1 required N missing");
  CHECK(accept({"-s", "-h"}).server == "-h");
}

struct WatchOptions {
  std::optional<double> watch;
  std::vector<std::string> tubes;
  bool json = false;
};
constexpr std::array kWatchRows{
    options::kHelpOption,
    option<&WatchOptions::watch>(
        {.names = "--watch", .type = options::time(0.1, 60), .bare_value = "2"}),
    option<&WatchOptions::tubes>({.names = "TUBE", .type = options::text("TUBE")}),
    option<&WatchOptions::json>({.names = "--json"}),
};

TEST_CASE("a value that may be left out is the next word if that is one") {
  const auto accept_watch = [](const Words& words) {
    WatchOptions given;
    const auto parsed = options::parse(kWatchRows, pointers(words), no_environment, &given);
    REQUIRE(parsed.ok());
    return given;
  };
  CHECK_FALSE(accept_watch({}).watch);
  CHECK(accept_watch({"--watch"}).watch == 2);
  CHECK(accept_watch({"--watch="}).watch == 2);
  CHECK(accept_watch({"--watch=5"}).watch == 5);
  CHECK(accept_watch({"--watch", "500ms"}).watch == 0.5);
  CHECK(accept_watch({"--watch", "5"}).tubes.empty());
  for (const Words& words : {Words{"mail", "--watch"},
                             {"--watch", "mail"},
                             {"--watch", "--json", "mail"},
                             {"--watch", "--", "mail"}}) {
    CHECK(accept_watch(words).watch == 2);
    CHECK(accept_watch(words).tubes == Words{"mail"});
  }
  // Only the next word, and no word after "--".
  CHECK(accept_watch({"--watch", "--json", "5"}).tubes == Words{"5"});
  CHECK(accept_watch({"--watch", "--", "5"}).tubes == Words{"5"});
  CHECK(accept_watch({"--watch", "3", "5"}).tubes == Words{"5"});
  CHECK(accept_watch({"--watch", "99"}).tubes == Words{"99"});
  WatchOptions given;
  const Words wrong{"--watch=99"};
  CHECK_FALSE(options::parse(kWatchRows, pointers(wrong), no_environment, &given).ok());
}

struct RunOptions {
  std::string command;
  bool verbose = false;
};
constexpr std::array kRunRows{
    options::kHelpOption,
    option<&RunOptions::command>(
        {.names = "COMMAND", .type = {options::ValueType::Kind::command, "COMMAND"}}),
    option<&RunOptions::verbose>({.names = "-v,--verbose"}),
};

TEST_CASE("the words after a command belong to it") {
  const auto arguments = [](const Words& words) {
    RunOptions given;
    auto parsed = options::parse(kRunRows, pointers(words), no_environment, &given,
                                 AfterArguments::program_arguments);
    REQUIRE(parsed.ok());
    CHECK(given.command == "run");
    if (given.verbose) parsed->program_arguments.emplace_back("verbose");
    return parsed->program_arguments;
  };
  CHECK(arguments({"run"}).empty());
  CHECK(arguments({"run", "a", "-v", "--", "--help"}) == Words{"a", "-v", "--", "--help"});
  CHECK(arguments({"--", "run", "-v", "--", "x"}) == Words{"-v", "--", "x"});
  CHECK(arguments({"run", "--", "-v"}) == Words{"-v"});
  CHECK(arguments({"run", "-v", "a"}) == Words{"a", "verbose"});
  CHECK(arguments({"run", "[a,b]"}) == Words{"[a,b]"});
}

}  // namespace
}  // namespace tubed::options_test
