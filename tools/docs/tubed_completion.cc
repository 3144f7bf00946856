// Both scripts are made from the same list of flags: all_flags() takes the names, the candidates
// for the argument and the first sentence of each row. For bash, one `case` on the word before the
// cursor selects the candidates, and any other word completes to a flag; flags with the same
// candidates share a branch. For zsh, `_arguments` gets one line for each flag, with its
// description.
#include "tools/docs/tubed_completion.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "config/table.h"
#include "tools/docs/zsh.h"

namespace tubed::docs {
namespace {

// The candidates for the argument of a flag.
enum class Candidates : std::uint8_t { none, unknown, files, directories, users, words };

struct Flag {
  std::vector<std::string> names;
  std::string argument;  // its placeholder
  Candidates candidates = Candidates::none;
  std::string words;  // of Candidates::words, with a space between
  std::string doc;
  bool repeats = false;
};

// The placeholder decides, because rows have no other mark for files, directories and users.
Candidates candidates_of(std::string_view placeholder) {
  if (placeholder.empty()) return Candidates::none;
  if (placeholder == "FILE" || placeholder == "FILES") return Candidates::files;
  if (placeholder == "DIR") return Candidates::directories;
  if (placeholder == "NAME") return Candidates::users;
  return Candidates::unknown;
}

Flag flag_of(const config::Option& row) {
  Flag flag;
  if (row.short_flag != '\0') flag.names.push_back(fmt::format("-{}", row.short_flag));
  if (!row.long_flag.empty()) flag.names.emplace_back(row.long_flag);
  // An optional argument follows a "=", so the flag alone is complete.
  if (!row.argument_is_optional) flag.argument = row.argument;
  flag.candidates = candidates_of(flag.argument);
  flag.doc = config::first_sentence_of(row.doc);
  flag.repeats =
      row.action == config::Action::listen || row.action == config::Action::raise_log_level;
  return flag;
}

Flag flag_of(const config::Setting& row) {
  Flag flag;
  if (row.short_flag != '\0') flag.names.push_back(fmt::format("-{}", row.short_flag));
  flag.names.push_back(row.flag());
  flag.argument = config::placeholder(row.type);
  flag.candidates = candidates_of(flag.argument);
  flag.doc = row.first_sentence();
  if (row.type.kind == config::Kind::choice || row.type.kind == config::Kind::truth) {
    flag.words = fmt::format("{}", fmt::join(row.type.choices, " "));
  } else if (row.type.kind == config::Kind::sync) {
    flag.words = "always never";
  }
  if (!flag.words.empty()) flag.candidates = Candidates::words;
  return flag;
}

// Options first, then settings, as in --help.
std::vector<Flag> all_flags() {
  std::vector<Flag> flags;
  for (const auto& row : config::options_table()) flags.push_back(flag_of(row));
  for (const auto& row : config::settings_table()) flags.push_back(flag_of(row));
  return flags;
}

// The names of all flags with these candidates (and, for words, these words), joined with
// `between`.
std::string names_with(const std::vector<Flag>& flags, Candidates candidates,
                       std::string_view words, std::string_view between) {
  std::vector<std::string> names;
  for (const Flag& flag : flags) {
    if (flag.candidates != candidates || flag.words != words) continue;
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return fmt::format("{}", fmt::join(names, between));
}

// One branch of a `case` of bash.
std::string bash_case(const std::string& names, std::string_view action) {
  if (names.empty()) return "";
  return fmt::format("    {})\n      {}\n      ;;\n", names, action);
}

// A command of bash that completes one of `words`.
std::string bash_words(std::string_view words) {
  return fmt::format("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$current\")", words);
}

// `doc` up to its first explanation, as a menu shows one line.
std::string_view shortened(std::string_view doc) {
  doc = doc.substr(0, std::min(doc.find(": "), doc.find("; ")));
  if (doc.ends_with('.')) doc.remove_suffix(1);
  return doc;
}

std::string zsh_action(const Flag& flag) {
  switch (flag.candidates) {
    case Candidates::none:
      return "";
    case Candidates::unknown:
      return fmt::format(":{}: ", flag.argument);
    case Candidates::files:
      return fmt::format(":{}:_files", flag.argument);
    case Candidates::directories:
      return fmt::format(":{}:_files -/", flag.argument);
    case Candidates::users:
      return fmt::format(":{}:_users", flag.argument);
    case Candidates::words:
      return fmt::format(":{}:({})", flag.argument, flag.words);
  }
  return "";
}

std::string zsh_line(const Flag& flag) {
  return "  " + zsh_option({.names = flag.names,
                            .takes_argument = flag.candidates != Candidates::none,
                            .repeats = flag.repeats,
                            .description = shortened(flag.doc),
                            .action = zsh_action(flag)});
}

}  // namespace

std::string bash_completion() {
  const auto flags = all_flags();
  std::string all;
  for (const Flag& flag : flags) all += fmt::format("\n        {}", fmt::join(flag.names, " "));
  std::string result =
      "# Completion of tubed for bash.\n"
      "# Generated from src/config/table.cc by tools/generate-docs. Do not edit.\n"
      "# shellcheck shell=bash\n\n"
      "_tubed() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  # bash cuts --flag=argument at its \"=\".\n"
      "  if [[ $current == '=' ]]; then\n"
      "    current=\n"
      "  elif [[ $previous == '=' ]]; then\n"
      "    previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n"
      "  COMPREPLY=()\n"
      "  case $previous in\n";
  constexpr std::string_view kBar = " | ";
  result +=
      bash_case(names_with(flags, Candidates::files, "", kBar),
                "compopt -o filenames\n      mapfile -t COMPREPLY < <(compgen -f -- \"$current\")");
  result +=
      bash_case(names_with(flags, Candidates::directories, "", kBar),
                "compopt -o filenames\n      mapfile -t COMPREPLY < <(compgen -d -- \"$current\")");
  result += bash_case(names_with(flags, Candidates::users, "", kBar),
                      "mapfile -t COMPREPLY < <(compgen -u -- \"$current\")");
  std::vector<std::string> done;
  for (const Flag& flag : flags) {
    if (flag.candidates != Candidates::words || std::ranges::count(done, flag.words) != 0) continue;
    done.push_back(flag.words);
    result +=
        bash_case(names_with(flags, Candidates::words, flag.words, kBar), bash_words(flag.words));
  }
  result += "    # Nothing is known of the arguments of these.\n";
  result +=
      fmt::format("    {}) ;;\n", names_with(flags, Candidates::unknown, "", " | \\\n      "));
  return result +
         fmt::format("    *)\n      {}\n      ;;\n  esac\n}}\n\ncomplete -F _tubed tubed\n",
                     bash_words(all));
}

std::string zsh_completion() {
  std::string result =
      "#compdef tubed\n"
      "# Completion of tubed for zsh.\n"
      "# Generated from src/config/table.cc by tools/generate-docs. Do not edit.\n\n"
      "_arguments -s -S";
  for (const Flag& flag : all_flags()) result += fmt::format(" \\\n{}", zsh_line(flag));
  return result + '\n';
}

}  // namespace tubed::docs
