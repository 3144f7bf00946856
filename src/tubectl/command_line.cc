// The only file that includes CLI11. It builds a parser for each subcommand from its rows, parses
// the words, and then assigns the values that were given to the members of the options struct.
//
// CLI11 knows only text, lists of text and truth values here: a ParsedOption holds what it parsed
// for one row. Numbers, times and sizes are checked and brought to decimal by normalized(), as a
// transformation of the text, so that CLI11 reports their errors with the option's name. The struct
// of a subcommand is made and filled in only for the subcommand that was named.
//
// The steps of parse_and_run():
// 1. arranged() moves the options before the subcommand after it, and turns "help X" into "X
//    --help".
// 2. An unknown subcommand is reported before CLI11 sees it, with a suggestion.
// 3. CLI11 parses; its exceptions become one line each, with exit code 64.
// 4. fill_in() assigns the values that were given, and only those, so that a member without its
//    option keeps its initial value.
// 5. The options of the connection are checked together, and the files that they name are read.
// 6. The subcommand runs. An Error that it returns means that the server is not reachable: exit
//    code 69.
#include "tubectl/command_line.h"

#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text/suggestion.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/options.h"

namespace tubed::tubectl {
namespace {

constexpr const char* kDescription =
    "The command-line client of tubed, and of any server that speaks beanstalk.";

constexpr const char* kOverview =
    R"(A server is where -s or TUBED_SERVER says, else at 127.0.0.1:11300. The options
before the subcommand may also come after it.

examples:
  tubectl put -t mail 'to: ada'               # prints the job's id
  tubectl tubes                               # what is where, and how fast it moves
  tubectl reserve -t mail --delete            # prints a job's body, and deletes the job
  tubectl work -t mail -j 4 -- ./send-mail    # a command for each job
  tubectl top                                 # a live view
  tubectl drain && tubectl wait-idle --draining    # before a deploy

tubectl help SUBCOMMAND has more of each, and so has tubectl(1).)";

// The options that may come before the subcommand, and have a value.
constexpr std::array<std::string_view, 8> kLeadingOptions{
    "-s", "--server", "--max-reply", "--ca", "--cert", "--key", "--server-name", "--token-file"};
// The option that may come before the subcommand, and has no value.
constexpr std::string_view kLeadingFlag = "--tls";

// How many words an option before the subcommand takes, with its value; 0: it is none of those.
std::size_t words_of_leading_option(std::string_view word) {
  if (word == kLeadingFlag) return 1;
  for (const std::string_view name : kLeadingOptions) {
    if (word == name) return 2;
    const bool is_long = name.starts_with("--");
    if (is_long ? word.starts_with(fmt::format("{}=", name)) : word.starts_with(name)) return 1;
  }
  return 0;
}

// The words as CLI11 is to read them: the options before the subcommand go after it, and "help" and
// "version" become the options of these names.
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

// --- Parsers from rows

// A row as CLI11 knows it, and what it has parsed.
struct ParsedOption {
  const OptionRow* row = nullptr;
  CLI::Option* option = nullptr;
  std::string text;
  std::vector<std::string> texts;  // of a row that repeats
  bool flag = false;

  std::vector<std::string> values() const {
    if (row->type.kind == ValueType::Kind::flag) return {flag ? "true" : "false"};
    return row->repeats ? texts : std::vector{text};
  }
};

struct ParsedCommand {
  const Subcommand* subcommand = nullptr;
  CLI::App* app = nullptr;
  std::deque<ParsedOption> options;  // they do not move: CLI11 refers to them
  std::shared_ptr<void> values;      // the options struct, with its defaults
};

// The text is replaced by its decimal form; a returned text is the reason of a failure, and an
// empty text is success, as CLI11 defines it.
CLI::Validator normalizer(const ValueType& type) {
  return CLI::Validator(
      [type](std::string& text) {
        auto value = normalized(type, text);
        if (!value) return value.error().message;
        text = std::move(*value);
        return std::string();
      },
      "");
}

// Adds the option of `parsed.row`. `defaults` is the options struct; null: there are no defaults.
void add_option(CLI::App& app, ParsedOption& parsed, const void* defaults) {
  const OptionRow& row = *parsed.row;
  const std::string names(row.names);
  const std::string help(row.help);
  if (row.type.kind == ValueType::Kind::flag) {
    parsed.option = app.add_flag(names, parsed.flag, help);
    if (!row.group.empty()) parsed.option->group(std::string(row.group));
    return;
  }
  parsed.option = row.repeats ? app.add_option(names, parsed.texts, help)
                              : app.add_option(names, parsed.text, help);
  parsed.option->type_name(std::string(row.type.placeholder));
  if (!row.group.empty()) parsed.option->group(std::string(row.group));
  if (row.type.kind == ValueType::Kind::choice) {
    parsed.option->check(
        CLI::IsMember(std::vector<std::string>(row.type.choices.begin(), row.type.choices.end())));
  } else {
    parsed.option->transform(normalizer(row.type));
  }
  if (row.required) parsed.option->required();
  if (!row.env.empty()) parsed.option->envname(std::string(row.env));
  if (row.one_each) parsed.option->allow_extra_args(false);
  if (row.separator != '\0') parsed.option->delimiter(row.separator);
  if (row.shows_default) {
    parsed.option->default_str(row.default_text.empty() ? row.show(defaults)
                                                        : std::string(row.default_text));
  }
}

// Precondition: all options of `app` were added.
void add_relations(CLI::App& app, const ParsedOption& parsed) {
  for (const std::string_view other : parsed.row->excludes) {
    if (!other.empty()) parsed.option->excludes(app.get_option(std::string(other)));
  }
  if (!parsed.row->needs.empty()) {
    parsed.option->needs(app.get_option(std::string(parsed.row->needs)));
  }
}

void add_subcommand(CLI::App& app, ParsedCommand& command) {
  const Subcommand& subcommand = *command.subcommand;
  command.app = app.add_subcommand(std::string(subcommand.name), std::string(subcommand.summary));
  command.app->group(std::string(subcommand.group));
  command.app->footer(std::string(subcommand.footer));
  // The words after the program that a subcommand runs stay as they are: CLI11 would take "[a,b]"
  // apart.
  command.app->prefix_command(subcommand.program_arguments != nullptr);
  command.values = subcommand.make_options();
  for (const auto& rows : {subcommand.options, subcommand.connection_options}) {
    for (const OptionRow& row : rows) {
      command.options.emplace_back().row = &row;
      add_option(*command.app, command.options.back(), command.values.get());
    }
  }
  for (const ParsedOption& parsed : command.options) add_relations(*command.app, parsed);
}

// The parser of all, and what it has parsed.
struct ProgramParser {
  CLI::App app{kDescription, "tubectl"};
  std::deque<ParsedOption> leading;  // only for the help: arranged() moves them
  std::deque<ParsedCommand> commands;
};

// The pointers that CLI11 keeps point into `line`, which must not move afterwards.
void set_up(ProgramParser& line) {
  CLI::App& app = line.app;
  app.set_version_flag(std::string(kVersionOption.names), "tubectl " TUBED_VERSION,
                       std::string(kVersionOption.help));
  app.set_help_flag(std::string(kHelpOption.names), std::string(kHelpOption.help));
  app.require_subcommand(1);
  static const Server kDefaultServer;
  const auto add_leading = [&](const OptionRow& row) {
    line.leading.emplace_back().row = &row;
    add_option(app, line.leading.back(), &kDefaultServer);
  };
  add_leading(kServerOption);
  add_leading(kMaxReplyOption);
  for (const OptionRow& row : kConnectionOptions<>) add_leading(row);
  app.footer(kOverview);
  for (const Subcommand* subcommand : subcommands()) {
    line.commands.emplace_back().subcommand = subcommand;
    add_subcommand(app, line.commands.back());
  }
}

// --- Mistakes

std::string no_such_subcommand(const std::string& word) {
  std::vector<std::string> names{"help", "version"};
  for (const Subcommand* subcommand : subcommands()) names.emplace_back(subcommand->name);
  return fmt::format("there is no subcommand {}{}", word, suggestion(word, names));
}

// "there is no option --dleay (did you mean --delay?)"
std::string no_such_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string name = word.substr(0, word.find('='));
  return fmt::format("there is no option {}{}", name, suggestion(name, names));
}

// Of several unexpected words an unknown option is named first, since the words after it are often
// its values.
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

// The first option that is required and was not given.
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

// Returns kExitUsage. The reason may have several lines in CLI11; it is printed as one line.
int usage_error(std::string reason, const CLI::App& app) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  const auto asked = app.get_subcommands();
  const std::string name = asked.empty() ? "" : " " + asked.front()->get_name();
  return fail(kExitUsage, fmt::format("{}; try tubectl{} --help", reason, name));
}

// --- Running

// Assigns the values that were given.
Result<void> fill_in(const ParsedCommand& command) {
  for (const ParsedOption& parsed : command.options) {
    if (parsed.option->count() > 0) parsed.row->assign(command.values.get(), parsed.values());
  }
  if (command.subcommand->program_arguments == nullptr) return {};
  std::vector<std::string> rest = command.app->remaining();
  if (!rest.empty() && rest.front() == "--") {
    rest.erase(rest.begin());
  } else if (!rest.empty() && rest.front().starts_with('-')) {
    return Error{no_such_option(*command.app, rest.front())};
  }
  command.subcommand->program_arguments(command.values.get()) = std::move(rest);
  return {};
}

int parse_and_run(int argc, const char* const* argv) {
  ProgramParser line;
  set_up(line);
  std::vector<std::string> words = arranged({argv + 1, argv + std::max(argc, 1)});
  const auto is_first_word = [&words](const Subcommand* subcommand) {
    return subcommand->name == words.front();
  };
  if (!words.empty() && !words.front().starts_with('-') &&
      std::ranges::none_of(subcommands(), is_first_word)) {
    return usage_error(no_such_subcommand(words.front()), line.app);
  }
  std::ranges::reverse(words);  // as parse() takes them
  try {
    line.app.parse(words);
  } catch (const CLI::Success& success) {  // --help, --version
    return line.app.exit(success);
  } catch (const CLI::ExtrasError&) {
    return usage_error(unexpected(line.app), line.app);
  } catch (const CLI::RequiredError&) {
    return usage_error(missing(line.app), line.app);
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what(), line.app);
  }
  const auto asked = std::ranges::find_if(
      line.commands, [](const ParsedCommand& command) { return command.app->parsed(); });
  if (const auto filled = fill_in(*asked); !filled) {
    return usage_error(filled.error().message, line.app);
  }
  if (asked->subcommand->server != nullptr) {
    Server& server = *asked->subcommand->server(asked->values.get());
    if (const auto checked = check(server); !checked) {
      return usage_error(checked.error().message, line.app);
    }
    if (const int code = prepare(server); code != 0) return code;
  }
  const auto exit_code = asked->subcommand->run(asked->values.get());
  return exit_code ? exit_code.value() : fail(kExitUnavailable, exit_code.error().message);
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
