// all_parts() turns the rows into Parts: tubectl itself and each subcommand, with options and
// positional arguments. Both scripts are made from them.
//
// For bash, two functions are generated: one lists the options of a subcommand, the other sets the
// kind of argument that an option or a position takes. The part that is written by hand,
// packaging/completions/tubectl.bash, calls them and lists the candidates. Patterns with the same
// candidates share a branch, which keeps the script small.
//
// For zsh, the whole file is generated: each part becomes a call of _arguments, whose
// specifications zsh interprets by itself [zshcompsys(1)]. The functions that list tubes are in
// kZshHead.
#include "tools/docs/tubectl_completion.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/docs/zsh.h"
#include "tubectl/commands/table.h"

namespace tubed::docs {
namespace {

using options::OptionRow;
using options::ValueType;

// The candidates of a shell for an argument.
enum class Offer : std::uint8_t { none, nothing_known, files, tubes, commands, words };

// An option or a positional argument as the completion needs it.
struct Argument {
  std::vector<std::string> names;  // of an option; empty for a positional
  std::string placeholder;
  Offer offer = Offer::none;
  std::string words;  // of Offer::words, separated by spaces
  std::string help;
  bool repeats = false;
};

// Everything that can follow one subcommand.
struct Part {
  std::string name;  // empty: the options of tubectl itself
  std::string help;
  std::vector<Argument> options;
  std::vector<Argument> positionals;
};

// Ids and numbers cannot be completed: nothing_known suppresses the completion of file names.
Offer offer_of(const ValueType& type) {
  switch (type.kind) {
    case ValueType::Kind::flag:
      return Offer::none;
    case ValueType::Kind::tube:
      return Offer::tubes;
    case ValueType::Kind::file:
      return Offer::files;
    case ValueType::Kind::command:
      return Offer::commands;
    case ValueType::Kind::choice:
      return Offer::words;
    default:
      return Offer::nothing_known;
  }
}

Argument argument_of(const OptionRow& row) {
  return {.names = {},
          .placeholder = std::string(row.type.placeholder),
          // A value that may be left out is completed as if it were.
          .offer = row.bare_value.empty() ? offer_of(row.type) : Offer::none,
          .words = fmt::format("{}", fmt::join(row.type.choices, " ")),
          .help = std::string(row.help),
          .repeats = row.repeats};
}

// A row may be both an option and a positional argument, as -t and TUBE are: it is added to both.
void add_row(const OptionRow& row, Part& part) {
  Argument argument = argument_of(row);
  auto names = options::split_names(row);
  if (!names.positional.empty()) part.positionals.push_back(argument);
  if (names.names.empty()) return;
  argument.names = std::move(names.names);
  part.options.push_back(std::move(argument));
}

// tubectl itself, and its subcommands.
std::vector<Part> all_parts() {
  std::vector<Part> parts(1);
  for (const OptionRow& row : tubectl::program_options()) add_row(row, parts.front());
  for (const tubectl::Subcommand* subcommand : tubectl::subcommands()) {
    Part& part = parts.emplace_back(
        Part{std::string(subcommand->name), std::string(subcommand->summary), {}, {}});
    for (const OptionRow& row : tubectl::options_of(*subcommand)) add_row(row, part);
  }
  return parts;
}

// All spellings of all options, in the order of the rows.
std::vector<std::string> names_of(const std::vector<Argument>& options) {
  std::vector<std::string> names;
  for (const Argument& option : options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// --- bash

// The pattern of a case: an option's names, or the position of a positional argument.
std::vector<std::string> bash_patterns(const Part& part) {
  std::vector<std::string> patterns;
  for (std::size_t i = 0; i < part.positionals.size(); ++i) {
    const auto place =
        part.positionals[i].repeats ? fmt::format("'[{}-9]*", i + 1) : fmt::format("{}'", i + 1);
    patterns.push_back(fmt::format("'{} {}", part.name, place));
  }
  return patterns;
}

// A branch of the generated case: the patterns, and the kind of argument that they take.
struct BashCase {
  std::string takes;
  std::vector<std::string> patterns;
};

// The kind, as the part of the script that is written by hand understands it.
std::string takes_of(const Argument& argument) {
  switch (argument.offer) {
    case Offer::none:
      return "";
    case Offer::nothing_known:
      return "unknown";
    case Offer::files:
      return "files";
    case Offer::tubes:
      return "tubes";
    case Offer::commands:
      return "commands";
    case Offer::words:
      return "words " + argument.words;
  }
  return "";
}

// Adds the pattern to the branch of the same kind. O(branches).
void add_case(std::vector<BashCase>& cases, const std::string& takes, const std::string& pattern) {
  if (takes.empty()) return;
  auto found = std::ranges::find(cases, takes, &BashCase::takes);
  if (found == cases.end()) found = cases.insert(cases.end(), BashCase{takes, {}});
  found->patterns.push_back(pattern);
}

// The position 1 of tubectl itself is the subcommand.
std::vector<BashCase> bash_cases(const std::vector<Part>& parts) {
  std::vector<BashCase> cases;
  std::string subcommands = "words";
  for (const Part& part : parts) {
    if (!part.name.empty()) subcommands += ' ' + part.name;
    for (const Argument& option : part.options) {
      for (const auto& name : option.names) {
        add_case(cases, takes_of(option), fmt::format("'{} {}'", part.name, name));
      }
    }
    const auto patterns = bash_patterns(part);
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      add_case(cases, takes_of(part.positionals[i]), patterns[i]);
    }
  }
  add_case(cases, subcommands + " help", "' 1'");
  add_case(cases, subcommands, "'help 1'");
  return cases;
}

// --- zsh

constexpr std::string_view kZshHead = R"zsh(#compdef tubectl
# Completion of tubectl for zsh.
# Generated from the options of its subcommands by tools/generate-docs. Do not edit.

_tubectl_tubes() {
  local -a server tubes
  local expl
  integer i
  # What stands before the subcommand.
  if [[ -n $tubectl_server ]]; then server=(-s "${(Q)tubectl_server}"); fi
  for ((i = 2; i < CURRENT; i++)); do
    case $words[i] in
      (-s|--server) server=(-s "${(Q)words[i+1]}") ;;
      (--server=*) server=(-s "${(Q)${words[i]#*=}}") ;;
      (-s?*) server=(-s "${(Q)${words[i]#-s}}") ;;
    esac
  done
  tubes=("${(@f)$(timeout 1 "${(Q)tubectl_program}" tubes --names $server 2>/dev/null </dev/null)}")
  tubes=(${tubes:#})
  _wanted tubes expl tube compadd -a tubes
}

_tubectl() {
  local curcontext=$curcontext state line ret=1 tubectl_program=$words[1] tubectl_server
  typeset -A opt_args
)zsh";

// Without the explanation, because a menu shows one line.
std::string_view shortened(std::string_view help) {
  return help.substr(0, std::min(help.find(": "), help.find("; ")));
}

// The end of a specification: the placeholder, and the function or the words that complete it.
std::string zsh_action(const Argument& argument) {
  switch (argument.offer) {
    case Offer::none:
      return "";
    case Offer::nothing_known:
      return fmt::format(":{}: ", argument.placeholder);
    case Offer::files:
      return fmt::format(":{}:_files", argument.placeholder);
    case Offer::tubes:
      return fmt::format(":{}:_tubectl_tubes", argument.placeholder);
    case Offer::commands:
      return fmt::format(":{}:_command_names -e", argument.placeholder);
    case Offer::words:
      return fmt::format(":{}:({})", argument.placeholder, argument.words);
  }
  return "";
}

std::string zsh_line(const Argument& option) {
  return zsh_option({.names = option.names,
                     .takes_argument = option.offer != Offer::none,
                     .repeats = option.repeats,
                     .description = shortened(option.help),
                     .action = zsh_action(option)});
}

// The parts of a specification of _arguments, each piece after `indent`.
std::string zsh_arguments(const Part& part, std::string_view indent) {
  std::string result;
  for (const Argument& option : part.options) {
    result += fmt::format(" \\\n{}{}", indent, zsh_line(option));
  }
  for (std::size_t i = 0; i < part.positionals.size(); ++i) {
    const Argument& argument = part.positionals[i];
    const auto place = argument.repeats ? "*" : fmt::format("{}", i + 1);
    result += fmt::format(" \\\n{}'{}{}'", indent, place, zsh_action(argument));
    if (argument.offer == Offer::commands) {
      result += fmt::format(" \\\n{}'*::argument: _normal'", indent);
    }
  }
  return result;
}

}  // namespace

// The text between the marker lines of packaging/completions/tubectl.bash.
std::string tubectl_bash_tables() {
  const auto parts = all_parts();
  std::string result = "_tubectl_options() {\n  case $1 in\n";
  for (const Part& part : parts) {
    result +=
        fmt::format("    '{}') echo '{}' ;;\n", part.name, fmt::join(names_of(part.options), " "));
  }
  result +=
      "  esac\n}\n\n# Sets takes to the kind of an option's argument, or of a positional "
      "argument, of a\n# subcommand; to nothing for a flag.\n"
      "_tubectl_takes() {\n  takes=\n  case \"$1 $2\" in\n";
  for (const BashCase& one : bash_cases(parts)) {
    result += fmt::format("    {})\n      takes='{}'\n      ;;\n",
                          fmt::join(one.patterns, " | \\\n      "), one.takes);
  }
  return result + "  esac\n}\n";
}

// Two levels: _arguments for tubectl finds the subcommand, and a case calls _arguments again with
// the options of that subcommand.
std::string tubectl_zsh_completion() {
  const auto parts = all_parts();
  std::string result(kZshHead);
  result += "  _arguments -C -A '-*'" + zsh_arguments(parts.front(), "    ") +
            " \\\n    '1:subcommand:->subcommand'"
            " \\\n    '*::argument:->arguments' && ret=0\n"
            "  tubectl_server=${opt_args[-s]:-$opt_args[--server]}\n"
            "  local -a subcommands=(\n";
  std::string cases;
  for (const Part& part : parts) {
    if (part.name.empty()) continue;
    result += fmt::format("    '{}:{}'\n", part.name, zsh_quoted(part.help, ":"));
    cases += fmt::format("        ({})\n          _arguments -s -S{} && ret=0\n          ;;\n",
                         part.name, zsh_arguments(part, "            "));
  }
  return result +
         "  )\n  case $state in\n    (subcommand)\n"
         "      subcommands+=('help:Print the help of a subcommand')\n"
         "      _describe -t commands subcommand subcommands && ret=0\n      ;;\n"
         "    (arguments)\n      case $words[1] in\n"
         "        (help)\n"
         "          ((CURRENT == 2)) && _describe -t commands subcommand subcommands && ret=0\n"
         "          ;;\n" +
         cases + "      esac\n      ;;\n  esac\n  return ret\n}\n\n_tubectl \"$@\"\n";
}

}  // namespace tubed::docs
