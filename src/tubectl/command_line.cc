#include "tubectl/command_line.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tubectl/exit_codes.h"
#include "tubectl/subcommand.h"

namespace tubed::tubectl {
namespace {

// In the order of the help.
constexpr std::array kSubcommands{&add_bench};

int usage_error(std::string reason, const CLI::App& app) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  const auto asked = app.get_subcommands();
  const std::string name = asked.empty() ? "" : " " + asked.front()->get_name();
  return fail(kExitUsage, fmt::format("{}; try tubectl{} --help", reason, name));
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App app("The command-line client of tubed, and of any server that speaks beanstalk.",
               "tubectl");
  app.set_version_flag("--version", "tubectl " TUBED_VERSION, "Print the version, and exit");
  app.set_help_flag("-h,--help", "Print this help, and exit");
  app.require_subcommand(1);
  app.footer("tubectl SUBCOMMAND --help tells more of each; so does tubectl(1).");
  std::vector<Subcommand> subcommands;
  for (const auto add : kSubcommands) subcommands.push_back(add(app));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what(), app);
  }
  const auto asked = std::ranges::find_if(
      subcommands, [](const Subcommand& subcommand) { return subcommand.app->parsed(); });
  const auto ended = asked->run();
  return ended ? ended.value() : fail(kExitUnavailable, ended.error().message);
}

}  // namespace

int run(int argc, const char* const* argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    return fail(kExitFailure, error.what());
  }
}

}  // namespace tubed::tubectl
