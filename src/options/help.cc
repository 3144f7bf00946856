// The order is: the description, the usage, the positional arguments, the options by their groups,
// the list of the page, and its footer. An option shows its names and its value; its text ends with
// its choices, the variable that sets it and its default, and what it needs or excludes. All lines
// that are made here are at most kColumns wide.
#include "options/help.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tubed::options {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kTextColumn = 26;

// Appends the words, with line ends between them where they are needed: each line begins at column
// `begin`, and the first of them may have `column` already. A word that is too long has a line of
// its own.
void fill(std::string_view text, std::size_t begin, std::size_t column, std::string& result) {
  bool is_first = true;  // of its line
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!is_first && column + 1 + word.size() > kColumns) {
      result += '\n';
      column = 0;
      is_first = true;
    }
    const std::size_t gap = is_first ? begin - std::min(column, begin) : 1;
    result.append(gap, ' ').append(word);
    column += gap + word.size();
    is_first = false;
  }
  result += '\n';
}

// The paragraphs of a footer, filled.
std::string filled(std::string_view text) {
  std::string result;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) fill(paragraph, 0, 0, result);
    paragraph.clear();
  };
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.starts_with(' ')) {
      end_paragraph();
      result.append(line).append("\n");
    } else {
      paragraph.append(paragraph.empty() ? "" : " ").append(line);
    }
  }
  end_paragraph();
  return result;
}

// "-t, --tube TUBE"
std::string head_of(const OptionRow& row, const std::vector<std::string>& names) {
  std::string head = fmt::format("{}", fmt::join(names, ", "));
  if (row.type.kind == ValueType::Kind::flag) return head;
  if (!row.bare_value.empty()) return head + fmt::format(" [{}]", row.type.placeholder);
  return head + fmt::format(" {}{}", row.type.placeholder, row.repeats ? "..." : "");
}

// The variable of the environment, and the default: " [$TUBED_SERVER, or 127.0.0.1:11300]".
std::string default_of(const OptionRow& row, const void* defaults) {
  std::string text;
  if (row.shows_default) {
    text = row.default_text.empty() ? row.show(defaults) : std::string(row.default_text);
  }
  if (row.env.empty()) return text.empty() ? "" : fmt::format(" [{}]", text);
  return text.empty() ? fmt::format(" [${}]", row.env)
                      : fmt::format(" [${}, or {}]", row.env, text);
}

// "FILE [TUBE...]"
std::string positionals_of(std::span<const OptionRow> rows) {
  std::string result;
  for (const OptionRow& row : rows) {
    auto name = split_names(row).positional;
    if (name.empty()) continue;
    if (row.repeats) name += "...";
    result += row.required ? ' ' + name : fmt::format(" [{}]", name);
  }
  return result;
}

std::string usage(const HelpPage& page) {
  std::string forms(page.usage);
  if (forms.empty()) {
    forms = "[OPTIONS]" + positionals_of(page.rows);
    if (!page.arguments.empty()) forms += fmt::format(" {}", page.arguments);
  }
  std::string result;
  for (std::string_view left = forms; !left.empty();) {
    const auto form = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(form.size() + 1, left.size()));
    result += fmt::format("{} {} {}\n", result.empty() ? "Usage:" : "      ", page.program, form);
  }
  return result;
}

}  // namespace

std::string row_text(const OptionRow& row, std::span<const OptionRow> rows, const void* defaults) {
  std::string text(row.help);
  if (!row.type.choices.empty()) text += fmt::format(" ({})", fmt::join(row.type.choices, ", "));
  text += default_of(row, defaults);
  if (!row.needs.empty() && row.help.find(row.needs) == row.help.npos)
    text += fmt::format("; needs {}", row.needs);
  std::vector<std::string> excluded;
  for (const OptionRow& other : rows) {
    if (exclude_each_other(row, other)) excluded.push_back(split_names(other).shown());
  }
  if (!excluded.empty()) text += fmt::format("; not with {}", fmt::join(excluded, ", "));
  return text;
}

std::string help_line(std::string_view name, std::string_view text) {
  std::string result = fmt::format("  {}", name);
  std::size_t column = result.size();
  if (column >= kTextColumn) {
    result += '\n';
    column = 0;
  }
  fill(text, kTextColumn, column, result);
  return result;
}

std::string help_text(const HelpPage& page) {
  std::string positionals;
  std::vector<std::string_view> groups;
  std::vector<std::string> texts;  // of each group
  for (const OptionRow& row : page.rows) {
    const auto names = split_names(row);
    const auto text = row_text(row, page.rows, page.defaults);
    if (!names.positional.empty()) {
      positionals += help_line(names.positional + (row.repeats ? "..." : ""),
                               names.names.empty() ? text : "As " + names.shown());
    }
    if (names.names.empty()) continue;
    const auto group = std::ranges::find(groups, row.group);
    const auto place = static_cast<std::size_t>(group - groups.begin());
    if (group == groups.end()) {
      groups.push_back(row.group);
      texts.emplace_back();
    }
    texts[place] += help_line(head_of(row, names.names), text);
  }
  std::string result = fmt::format("{}\n\n{}", page.description, usage(page));
  if (!positionals.empty()) result += "\nArguments:\n" + positionals;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    result += fmt::format("\n{}:\n{}", groups[i].empty() ? "Options" : groups[i], texts[i]);
  }
  result += page.list;
  if (!page.footer.empty()) result += '\n' + filled(page.footer);
  return result;
}

}  // namespace tubed::options
