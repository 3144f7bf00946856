#include "tubectl/command_line.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "tubectl/completion.h"
#include "tubectl/exit_codes.h"
#include "tubectl/subcommand.h"
#include "tubectl/suggestion.h"

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
  tubectl drain && tubectl wait-idle --draining    # before a deploy

tubectl help SUBCOMMAND has more of each, and so has tubectl(1).)";

// The options that may come before the subcommand, and have a value.
constexpr std::array<std::string_view, 3> kLeadingOptions{"-s", "--server", "--max-reply"};

// How many words an option before the subcommand takes, with its value; 0: it is none of those.
std::size_t words_of_leading_option(std::string_view word) {
  for (const std::string_view name : kLeadingOptions) {
    if (word == name) return 2;
    const bool is_long = name.starts_with("--");
    if (is_long ? word.starts_with(fmt::format("{}=", name)) : word.starts_with(name)) return 1;
  }
  return 0;
}

// As CLI11 is to read them: options before the subcommand go after it, and "help" and "version" are
// the options of these names.
std::vector<std::string> arranged(std::vector<std::string> words) {
  std::size_t leading = 0;
  while (leading < words.size()) {
    const std::size_t count = words_of_leading_option(words[leading]);
    if (count == 0) break;
    leading = std::min(leading + count, words.size());
  }
  if (leading == words.size()) return words;
  const auto first = words.begin() + static_cast<std::ptrdiff_t>(leading);
  if (*first == "version") return {"--version"};
  if (*first == "help") {
    if (first + 1 == words.end()) return {"--help"};
    return {*(first + 1), "--help"};
  }
  if (!first->starts_with('-')) std::rotate(words.begin(), first, first + 1);
  return words;
}

std::string no_such_subcommand(const std::string& word,
                               const std::vector<Subcommand>& subcommands) {
  std::vector<std::string> names{"help", "version"};
  for (const Subcommand& subcommand : subcommands) names.push_back(subcommand.app->get_name());
  return fmt::format("there is no subcommand {}{}", word, did_you_mean(word, names));
}

std::string unexpected(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  const auto option = std::ranges::find_if(
      words, [](const std::string& word) { return word.size() > 1 && word.starts_with('-'); });
  if (option != words.end()) {
    const auto asked = app.get_subcommands();
    return no_such_option(asked.empty() ? app : *asked.front(), *option);
  }
  return fmt::format("there {} too many: {}", words.size() > 1 ? "are arguments" : "is an argument",
                     fmt::join(words, " "));
}

// The first that is required and was not given.
std::string missing(const CLI::App& app) {
  const auto asked = app.get_subcommands();
  if (asked.empty()) return "a subcommand is missing";
  for (const CLI::Option* option : asked.front()->get_options()) {
    if (option->get_required() && option->empty()) {
      return fmt::format("{} is missing", option->get_name(true));
    }
  }
  return "an argument is missing";
}

int usage_error(std::string reason, const CLI::App& app) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  const auto asked = app.get_subcommands();
  const std::string name = asked.empty() ? "" : " " + asked.front()->get_name();
  return fail(kExitUsage, fmt::format("{}; try tubectl{} --help", reason, name));
}

std::vector<Subcommand> set_up(CLI::App& app) {
  app.set_version_flag("-V,-v,--version", "tubectl " TUBED_VERSION, "Print the version, and exit");
  app.set_help_flag("-h,--help", "Print this help, and exit");
  app.require_subcommand(1);
  // arranged() moves them: they are here for the help and for completion.
  static Server unused;
  add_server_option(app, unused);
  app.get_option("--server")->envname("");
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
  std::vector<std::string> words = arranged({argv + 1, argv + std::max(argc, 1)});
  const auto is_first_word = [&words](const Subcommand& subcommand) {
    return subcommand.app->get_name() == words.front();
  };
  if (!words.empty() && !words.front().starts_with('-') &&
      std::ranges::none_of(subcommands, is_first_word)) {
    return usage_error(no_such_subcommand(words.front(), subcommands), app);
  }
  std::ranges::reverse(words);  // as parse() takes them
  try {
    app.parse(words);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ExtrasError&) {
    return usage_error(unexpected(app), app);
  } catch (const CLI::RequiredError&) {
    return usage_error(missing(app), app);
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
