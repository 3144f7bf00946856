// The steps of parse_and_run():
//
// 1. take_beginning() splits the words up to the subcommand by the options of tubectl itself.
// 2. --version and --help need no subcommand; "version" and "help X" are other spellings. An
//    unknown option or subcommand is reported, with a suggestion.
// 3. The words before the subcommand, which are options of a connection, are inserted before the
//    words after it, and options::parse() assigns them all to the options struct of the subcommand.
//    A mistake is reported in one line, with exit code 64.
// 4. The options of the connection are checked together, and the files that they name are read.
// 5. The subcommand runs. If it returns an Error, the server is not reachable: exit code 69.
#include "tubectl/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "options/help.h"
#include "options/parse.h"
#include "text/suggestion.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/options.h"

namespace tubed::tubectl {
namespace {

using options::Piece;
using Words = std::span<const char* const>;

constexpr std::string_view kDescription =
    "The command-line client of tubed, and of any server that speaks beanstalk.";

constexpr std::string_view kOverview =
    R"(A server is where -s or TUBED_SERVER says, else at 127.0.0.1:11300. The options
before the subcommand may also come after it.

examples:
  tubectl put -t mail 'to: ada'             # prints the job's id
  tubectl tubes                             # what is where, how fast it moves
  tubectl reserve -t mail --delete          # prints a job and deletes it
  tubectl work -t mail -j 4 -- ./send-mail  # a command for each job
  tubectl top                               # a live view
  tubectl drain && tubectl wait-idle --draining    # before a deploy

tubectl help SUBCOMMAND has more of each, and so has tubectl(1).)";

// Returns kExitUsage. `subcommand`: whose help is recommended; null: the help of tubectl.
int usage_error(std::string reason, const Subcommand* subcommand = nullptr) {
  std::ranges::replace(reason, '\n', ' ');
  const std::string name = subcommand == nullptr ? "" : fmt::format(" {}", subcommand->name);
  return fail(kExitUsage, fmt::format("{}; try tubectl{} --help", reason, name));
}

int no_such_subcommand(std::string_view word) {
  std::vector<std::string> names{"help", "version"};
  for (const Subcommand* subcommand : subcommands()) names.emplace_back(subcommand->name);
  return usage_error(fmt::format("there is no subcommand {}{}", word, suggestion(word, names)));
}

int print_version() {
  return print("tubectl " TUBED_VERSION "\n");
}

// The subcommands under their headings.
std::string list_of_subcommands() {
  std::string result;
  for (const std::string_view group : {kWorkGroup, kLookGroup, kControlGroup, kManyGroup}) {
    result += fmt::format("\n{}:\n", group);
    for (const Subcommand* subcommand : subcommands()) {
      if (subcommand->group != group) continue;
      result += options::help_line(subcommand->name, subcommand->summary);
    }
  }
  return result;
}

int print_help() {
  const Server defaults;
  return print(options::help_text({.program = "tubectl",
                                   .description = kDescription,
                                   .rows = program_options(),
                                   .defaults = &defaults,
                                   .arguments = "SUBCOMMAND",
                                   .list = list_of_subcommands(),
                                   .footer = kOverview}));
}

int print_help(const Subcommand& subcommand) {
  const auto rows = options_of(subcommand);
  const auto defaults = subcommand.make_options();
  return print(options::help_text({.program = fmt::format("tubectl {}", subcommand.name),
                                   .description = subcommand.summary,
                                   .rows = rows,
                                   .defaults = defaults.get(),
                                   .usage = subcommand.usage,
                                   .footer = subcommand.footer}));
}

// The words up to the subcommand, and what they ask for.
struct Beginning {
  Words options;  // with their values
  bool is_wrong = false;
  bool wants_version = false;
  bool wants_help = false;
  std::optional<std::string_view> subcommand;
  Words rest;  // after the subcommand
};

Beginning take_beginning(Words words) {
  const auto rows = program_options();
  options::Splitter splitter(options::syntax_of(rows), words);
  Beginning beginning{.options = words, .subcommand = {}, .rest = {}};
  bool ended = false;
  while (const auto piece = splitter.next()) {
    if (piece->kind == Piece::Kind::end_of_options) ended = true;
    if (piece->kind == Piece::Kind::argument) {
      beginning.subcommand = piece->text;
      beginning.rest = splitter.rest();
      // A "--" before the subcommand ends the options before it.
      beginning.options = words.first(words.size() - beginning.rest.size() - (ended ? 2 : 1));
      break;
    }
    if (piece->kind == Piece::Kind::option) {
      const auto names = rows[piece->option].names;
      if (names == kVersionOption.names) beginning.wants_version = true;
      if (names == options::kHelpOption.names) beginning.wants_help = true;
    } else if (piece->kind == Piece::Kind::unknown || piece->kind == Piece::Kind::missing_value) {
      beginning.is_wrong = true;
    }
  }
  return beginning;
}

const Subcommand* subcommand_named(std::string_view name) {
  const auto all = subcommands();
  const auto found = std::ranges::find(all, name, &Subcommand::name);
  return found == all.end() ? nullptr : *found;
}

const char* environment(const char* name) {
  return std::getenv(name);
}

int run_subcommand(const Subcommand& subcommand, Words words) {
  const auto values = subcommand.make_options();
  const auto after = subcommand.program_arguments == nullptr
                         ? options::AfterArguments::nothing_follows
                         : options::AfterArguments::program_arguments;
  auto parsed = options::parse(options_of(subcommand), words, environment, values.get(), after);
  if (!parsed) return usage_error(parsed.error().message, &subcommand);
  if (parsed->wants_help) return print_help(subcommand);
  if (subcommand.program_arguments != nullptr) {
    subcommand.program_arguments(values.get()) = std::move(parsed->program_arguments);
  }
  if (subcommand.server != nullptr) {
    Server& server = *subcommand.server(values.get());
    if (const auto checked = check(server); !checked) {
      return usage_error(checked.error().message, &subcommand);
    }
    if (const int code = prepare(server); code != 0) return code;
  }
  const auto exit_code = subcommand.run(values.get());
  return exit_code ? exit_code.value() : fail(kExitUnavailable, exit_code.error().message);
}

// "help", or "help X"; any words after X are ignored.
int run_help(Words words) {
  const std::string_view name = words.empty() ? "help" : words.front();
  if (name == "help" || name == "version" || name.starts_with('-')) return print_help();
  const Subcommand* const subcommand = subcommand_named(name);
  return subcommand == nullptr ? no_such_subcommand(name) : print_help(*subcommand);
}

// Reports a mistake in the options first: the apparent subcommand may be the value of an option.
int wrong_beginning(const Beginning& beginning, const Subcommand* subcommand) {
  Server server;
  const auto parsed = options::parse(program_options(), beginning.options, environment, &server);
  return usage_error(parsed ? "a subcommand is missing" : parsed.error().message, subcommand);
}

int parse_and_run(Words words) {
  const auto beginning = take_beginning(words);
  const auto name = beginning.subcommand;
  if (beginning.wants_version || name == "version") return print_version();
  const Subcommand* const subcommand = name ? subcommand_named(*name) : nullptr;
  if (beginning.wants_help) return subcommand == nullptr ? print_help() : print_help(*subcommand);
  if (beginning.is_wrong || !name) return wrong_beginning(beginning, subcommand);
  if (name == "help") return run_help(beginning.rest);
  if (subcommand == nullptr) return no_such_subcommand(*name);
  std::vector<const char*> arranged(beginning.options.begin(), beginning.options.end());
  arranged.insert(arranged.end(), beginning.rest.begin(), beginning.rest.end());
  return run_subcommand(*subcommand, arranged);
}

}  // namespace

int run(int argc, const char* const* argv) {
  try {
    return parse_and_run(Words(argv + std::min(argc, 1), argv + std::max(argc, 0)));
  } catch (const std::exception& error) {
    return fail(kExitFailure, error.what());
  }
}

}  // namespace tubed::tubectl
