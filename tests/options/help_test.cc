#include "options/help.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tubed::options_test {
namespace {

using options::option;

struct PageOptions {
  std::vector<std::string> tubes;
  std::string file = "-";
  std::string server = "here";
  std::optional<double> timeout;
  std::chrono::milliseconds delay{1500};
  std::string state;
  bool all = false;
  bool held = false;
};

constexpr std::array<std::string_view, 2> kPageStates{"ready", "buried"};
constexpr std::array kPageRows{
    options::kHelpOption,
    option<&PageOptions::file>({.names = "FILE",
                                .type = options::kFile,
                                .help = "The file",
                                .required = true,
                                .shows_default = true}),
    option<&PageOptions::tubes>(
        {.names = "-t,--tube,TUBE", .type = options::text("TUBE"), .help = "Only of this tube"}),
    option<&PageOptions::server>({.names = "-s,--server",
                                  .type = options::text("ADDRESS"),
                                  .help = "Where it is",
                                  .shows_default = true,
                                  .env = "SERVER",
                                  .group = "The server"}),
    option<&PageOptions::timeout>({.names = "--timeout",
                                   .type = options::time(0, 5),
                                   .help = "At most this time",
                                   .shows_default = true,
                                   .default_text = "never"}),
    option<&PageOptions::delay>({.names = "--delay",
                                 .type = options::milliseconds(),
                                 .help = "After this time",
                                 .shows_default = true,
                                 .needs = "--all"}),
    option<&PageOptions::state>({.names = "--state",
                                 .type = options::choice("STATE", kPageStates),
                                 .help = "In this state"}),
    option<&PageOptions::all>({.names = "-a,--all", .help = "All", .excludes = {"--held", "TUBE"}}),
    option<&PageOptions::held>({.names = "--held", .help = "Held"}),
};

TEST_CASE("the help has the facts of each row") {
  const PageOptions defaults;
  CHECK(options::help_text({.program = "prog run",
                            .description = "Runs.",
                            .rows = kPageRows,
                            .defaults = &defaults,
                            .footer = "More text."}) ==
        R"(Runs.
Usage: prog run [OPTIONS] FILE [TUBE...]

Positionals:
  FILE FILE=- REQUIRED        The file
  TUBE TUBE ... Excludes: --all
                              Only of this tube

Options:
  -h,--help                   Print this help, and exit
  -t,--tube TUBE ... Excludes: --all
                              Only of this tube
  --timeout TIME=never        At most this time
  --delay TIME=1500ms Needs: --all
                              After this time
  --state STATE:{ready,buried}
                              In this state
  -a,--all Excludes: --tube --held
                              All
  --held Excludes: --all      Held

The server:
  -s,--server ADDRESS=here (Env:SERVER)
                              Where it is

More text.
)");
}

TEST_CASE("a page may have arguments and a list of its own") {
  CHECK(options::help_text({.program = "prog",
                            .description = "Runs.",
                            .rows = std::span(kPageRows).first(1),
                            .arguments = "SUBCOMMAND",
                            .list = "\nMore:\n" + options::help_line("put", "Put a job")}) ==
        R"(Runs.
Usage: prog [OPTIONS] SUBCOMMAND

Options:
  -h,--help                   Print this help, and exit

More:
  put                         Put a job
)");
}

TEST_CASE("a long name has its text on the next line") {
  CHECK(options::help_line(std::string(27, 'x'), "text") ==
        "  " + std::string(27, 'x') + " text\n");
  CHECK(options::help_line(std::string(28, 'x'), "text") ==
        "  " + std::string(28, 'x') + "\n" + std::string(30, ' ') + "text\n");
}

}  // namespace
}  // namespace tubed::options_test
