// tubectl_man_page() goes through the lines of the page. ".Ss Cm NAME" begins the section of a
// subcommand, whose rows apply to the lines after it; before the first section, the rows of tubectl
// itself and the shared options apply. A head is generated from the rows of its flags. In a
// section, the line after a head is their text in --help, after a comment that marks it; what
// follows is written by hand.
#include "tools/docs/tubectl_mdoc.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "options/help.h"
#include "tubectl/commands/table.h"

namespace tubed::docs {
namespace {

using options::OptionRow;
using Rows = std::vector<OptionRow>;

constexpr std::string_view kHead = ".It Fl ";
constexpr std::string_view kSection = ".Ss Cm ";
// A head lists the choices up to this number.
constexpr std::size_t kFewChoices = 3;
// Described before the sections.
constexpr std::string_view kShared[]{"--json", "--raw", "--watch"};

// "Ar N", or "Ar KEY Ns Oo : Ns Ar N Oc" for KEY[:N].
std::string value_macros(std::string_view placeholder) {
  const auto bracket = placeholder.find("[:");
  if (bracket == placeholder.npos) return fmt::format("Ar {}", placeholder);
  const auto rest = placeholder.substr(bracket + 2);
  return fmt::format("Ar {} Ns Oo : Ns Ar {} Oc", placeholder.substr(0, bracket),
                     rest.substr(0, rest.find(']')));
}

// "Fl t , Fl -tube Ar TUBE"
std::string head_of(const OptionRow& row) {
  std::string flags;
  for (const std::string& name : options::split_names(row).names) {
    flags += fmt::format("{}Fl {}", flags.empty() ? "" : " , ", name.substr(1));
  }
  if (row.type.placeholder.empty()) return flags;
  if (!row.type.choices.empty() && row.type.choices.size() <= kFewChoices) {
    return fmt::format("{} Cm {}", flags, fmt::join(row.type.choices, " | "));
  }
  if (!row.bare_value.empty()) return fmt::format("{} Op Ar {}", flags, row.type.placeholder);
  return fmt::format("{} {}", flags, value_macros(row.type.placeholder));
}

// The words of a line of macros. They name flags without the first hyphen.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    const auto end = std::min(line.find(' '), line.size());
    if (end > 0) words.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

constexpr std::string_view kMark = ".\\\" From --help:";

// The text of --help as a line of the page.
std::string as_roff(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
  return result;
}

Rows shared_rows() {
  const auto program = tubectl::program_options();
  Rows rows(program.begin(), program.end());
  for (const tubectl::Subcommand* subcommand : tubectl::subcommands()) {
    for (const OptionRow& row : subcommand->options) {
      if (std::ranges::find(kShared, row.names) != std::ranges::end(kShared)) rows.push_back(row);
    }
  }
  return rows;
}

// The rows of each section; the first, with an empty name, is what precedes the sections.
std::map<std::string, Rows> rows_of_sections() {
  std::map<std::string, Rows> rows{{"", shared_rows()}};
  for (const tubectl::Subcommand* subcommand : tubectl::subcommands()) {
    rows.emplace(subcommand->name, tubectl::options_of(*subcommand));
  }
  return rows;
}

// The default options of each subcommand.
std::map<std::string, std::shared_ptr<void>> defaults_of_sections() {
  std::map<std::string, std::shared_ptr<void>> defaults;
  for (const tubectl::Subcommand* subcommand : tubectl::subcommands()) {
    defaults.emplace(subcommand->name, subcommand->make_options());
  }
  return defaults;
}

// The heads of all rows that the words of a head name. In a section, the text of each row follows.
Result<std::string> heads_of(const std::string& section, const std::vector<std::string>& words,
                             const Rows& rows, const void* defaults) {
  std::string result;
  std::string text;
  const OptionRow* last = nullptr;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto flag = '-' + words[i];
    const auto row = std::ranges::find_if(
        rows, [&flag](const OptionRow& each) { return options::has_name(each, flag); });
    if (row == rows.end()) {
      if (words[i - 1] != "Fl") continue;
      return Error{fmt::format("the section of {} has no option {}",
                               section.empty() ? "tubectl itself" : section, flag)};
    }
    if (&*row != last) {
      result += (result.empty() ? "" : " , ") + head_of(*row);
      if (!section.empty())
        text += fmt::format("\n{}\n{}.", kMark, as_roff(options::row_text(*row, rows, defaults)));
    }
    last = &*row;
  }
  return ".It " + result + text;
}

// Each row of a subcommand has one of its flags among `words`, unless it is described before, or is
// an argument as well.
Result<void> check_mentions(const std::string& section, const Rows& rows,
                            const std::set<std::string>& words, const Rows& shared) {
  for (const OptionRow& row : rows) {
    const auto [names, positional] = options::split_names(row);
    const auto is_same = [&row](const OptionRow& other) { return other.names == row.names; };
    const auto is_mentioned = [&words](const std::string& name) {
      return words.contains(name.substr(1));
    };
    if (names.empty() || !positional.empty() || std::ranges::any_of(shared, is_same)) continue;
    if (std::ranges::none_of(names, is_mentioned)) {
      return Error{fmt::format("the section of {} lacks {}", section, row.names)};
    }
  }
  return {};
}

}  // namespace

Result<std::string> tubectl_man_page(std::string_view page) {
  const auto rows = rows_of_sections();
  const auto defaults = defaults_of_sections();
  bool is_generated = false;                           // the next line
  std::map<std::string, std::set<std::string>> words;  // of the macros of each section
  std::string section;
  std::string result;
  while (!page.empty()) {
    std::string line(page.substr(0, page.find('\n')));
    page.remove_prefix(std::min(line.size() + 1, page.size()));
    if (std::exchange(is_generated, line == kMark)) continue;
    if (is_generated) continue;
    const auto its_words = words_of(line);
    if (line.starts_with(".Sh ")) section.clear();
    if (line.starts_with(kSection)) section = its_words[2];
    if (!rows.contains(section)) return Error{fmt::format("there is no subcommand {}", section)};
    if (line.starts_with('.')) words[section].insert(its_words.begin(), its_words.end());
    if (line.starts_with(kHead)) {
      const auto its_defaults = defaults.find(section);
      line = TRY(heads_of(section, its_words, rows.at(section),
                          its_defaults == defaults.end() ? nullptr : its_defaults->second.get()));
    }
    result += line + '\n';
  }
  for (const auto& [name, its_rows] : rows) {
    if (name.empty()) continue;
    Rows elsewhere = rows.at("");
    // The word "filter" refers to the filters, which the section of list describes.
    if (name != "list" && words[name].contains("filter"))
      std::ranges::copy(rows.at("list"), std::back_inserter(elsewhere));
    TRY(check_mentions(name, its_rows, words[name], elsewhere));
  }
  return result;
}

}  // namespace tubed::docs
