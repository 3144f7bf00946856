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
  std::optional<double> watch;
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
    option<&PageOptions::watch>({.names = "--watch",
                                 .type = options::time(0, 5),
                                 .help = "Again and again, which takes a help text of more words "
                                         "than one line has, until it is ended",
                                 .bare_value = "2"}),
};

TEST_CASE("the help has the facts of each row") {
  const PageOptions defaults;
  CHECK(
      options::help_text({.program = "prog run",
                          .description = "Runs.",
                          .rows = kPageRows,
                          .defaults = &defaults,
                          .footer = "More text, which is filled: its lines were broken\ntoo "
                                    "early, so that they are joined here.\n\nexamples:\n  prog run "
                                    "a file, on a line that is kept however long it may be: it is "
                                    "an example of a command"}) ==
      R"(Runs.

Usage: prog run [OPTIONS] FILE [TUBE...]

Arguments:
  FILE                    The file [-]
  TUBE...                 As --tube

Options:
  -h, --help              Print this help, and exit
  -t, --tube TUBE...      Only of this tube; not with --all
  --timeout TIME          At most this time [never]
  --delay TIME            After this time [1500ms]; needs --all
  --state STATE           In this state (ready, buried)
  -a, --all               All; not with --tube, --held
  --held                  Held; not with --all
  --watch [TIME]          Again and again, which takes a help text of more words
                          than one line has, until it is ended

The server:
  -s, --server ADDRESS    Where it is [$SERVER, or here]

More text, which is filled: its lines were broken too early, so that they are
joined here.

examples:
  prog run a file, on a line that is kept however long it may be: it is an example of a command
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
  -h, --help              Print this help, and exit

More:
  put                     Put a job
)");
}

TEST_CASE("a usage with several forms") {
  CHECK(options::help_text({.program = "prog",
                            .description = "Runs.",
                            .rows = std::span(kPageRows).first(1),
                            .usage = "ID...\nTUBE N"}) ==
        R"(Runs.

Usage: prog ID...
       prog TUBE N

Options:
  -h, --help              Print this help, and exit
)");
}

TEST_CASE("a text is broken between words, at 80 columns") {
  const std::string indent(26, ' ');
  CHECK(options::help_line("x", std::string(50, 'a') + " bcd e") ==
        "  x" + indent.substr(3) + std::string(50, 'a') + " bcd\n" + indent + "e\n");
  CHECK(options::help_line("x", "a " + std::string(70, 'b') + " c") ==
        "  x" + indent.substr(3) + "a\n" + indent + std::string(70, 'b') + "\n" + indent + "c\n");
}

TEST_CASE("a long name has its text on the next line") {
  CHECK(options::help_line(std::string(23, 'x'), "text") ==
        "  " + std::string(23, 'x') + " text\n");
  CHECK(options::help_line(std::string(24, 'x'), "text") ==
        "  " + std::string(24, 'x') + "\n" + std::string(26, ' ') + "text\n");
}

}  // namespace
}  // namespace tubed::options_test
