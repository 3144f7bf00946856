#include "tubectl/command_line.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "tubectl/completion.h"
#include "tubectl/exit_codes.h"
#include "tubectl/subcommand.h"

namespace tubed::tubectl {
namespace {

constexpr const char* kDescription =
    "The command-line client of tubed, and of any server that speaks beanstalk.";

constexpr const char* kJobs = "Put jobs and work them off";
constexpr const char* kLook = "Look";
constexpr const char* kSteer = "Steer tubes and the server";
constexpr const char* kMany = "Many jobs at once";

struct Row {
  Subcommand (*add)(CLI::App&);
  const char* group;
};

// In the order of the help.
constexpr std::array<Row, 21> kSubcommands{{
    {&add_put, kJobs},     {&add_reserve, kJobs}, {&add_work, kJobs},     {&add_delete, kJobs},
    {&add_release, kJobs}, {&add_bury, kJobs},    {&add_kick, kJobs},     {&add_top, kLook},
    {&add_tubes, kLook},   {&add_stats, kLook},   {&add_peek, kLook},     {&add_job, kLook},
    {&add_pause, kSteer},  {&add_drain, kSteer},  {&add_undrain, kSteer}, {&add_wait_idle, kSteer},
    {&add_clear, kMany},   {&add_move, kMany},    {&add_export, kMany},   {&add_import, kMany},
    {&add_bench, kMany},
}};

constexpr const char* kOverview =
    R"(A server is where -s or TUBED_SERVER says, else at 127.0.0.1:11300.

examples:
  tubectl put -t mail 'to: ada'               # prints the job's id
  tubectl tubes                               # what is where, and how fast it moves
  tubectl reserve -t mail --delete            # prints a job's body, and deletes the job
  tubectl work -t mail -j 4 -- ./send-mail    # a command for each job
  tubectl top                                 # a live view
  tubectl drain && tubectl wait-idle          # before a deploy

tubectl SUBCOMMAND --help has more of each, and so has tubectl(1).)";

int usage_error(std::string reason, const CLI::App& app) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  const auto asked = app.get_subcommands();
  const std::string name = asked.empty() ? "" : " " + asked.front()->get_name();
  return fail(kExitUsage, fmt::format("{}; try tubectl{} --help", reason, name));
}

std::vector<Subcommand> set_up(CLI::App& app) {
  app.set_version_flag("--version", "tubectl " TUBED_VERSION, "Print the version, and exit");
  app.set_help_flag("-h,--help", "Print this help, and exit");
  app.require_subcommand(1);
  app.footer(kOverview);
  std::vector<Subcommand> subcommands;
  for (const Row& row : kSubcommands) {
    subcommands.push_back(row.add(app));
    subcommands.back().app->group(row.group);
  }
  return subcommands;
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App app(kDescription, "tubectl");
  const auto subcommands = set_up(app);
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

void occupy_standard_descriptors() {
  int descriptor = 0;
  do {
    descriptor = ::open("/dev/null", O_RDONLY);
  } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

int run(int argc, const char* const* argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    return fail(kExitFailure, error.what());
  }
}

std::string completion_tables_for_bash() {
  CLI::App app(kDescription, "tubectl");
  set_up(app);
  return bash_tables(app);
}

std::string completion_for_zsh() {
  CLI::App app(kDescription, "tubectl");
  set_up(app);
  return zsh_completion(app);
}

}  // namespace tubed::tubectl
