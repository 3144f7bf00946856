// The order is: the description, the usage, the positional arguments, the options by their groups,
// the list of the page, and its footer. Each row shows its names, its value and default, the
// variable that sets it, the options that it needs or excludes, and then its text.
#include "options/help.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tubed::options {
namespace {

constexpr std::size_t kTextColumn = 30;

std::string value_facts(const OptionRow& row, const void* defaults) {
  if (row.type.kind == ValueType::Kind::flag) return "";
  std::string result = ' ' + shown_value(row.type);
  if (row.shows_default) {
    const std::string text =
        row.default_text.empty() ? row.show(defaults) : std::string(row.default_text);
    if (!text.empty()) result += '=' + text;
  }
  if (row.repeats) result += " ...";
  if (row.required) result += " REQUIRED";
  return result;
}

std::string facts(const OptionRow& row, std::span<const OptionRow> rows, const void* defaults) {
  std::string result = value_facts(row, defaults);
  if (!row.env.empty()) result += fmt::format(" (Env:{})", row.env);
  if (!row.needs.empty()) result += fmt::format(" Needs: {}", row.needs);
  std::string excluded;
  for (const OptionRow& other : rows) {
    if (exclude_each_other(row, other)) excluded += ' ' + split_names(other).shown();
  }
  if (!excluded.empty()) result += " Excludes:" + excluded;
  return result;
}

std::string usage(const HelpPage& page) {
  std::string result = fmt::format("Usage: {} [OPTIONS]", page.program);
  for (const OptionRow& row : page.rows) {
    auto name = split_names(row).positional;
    if (name.empty()) continue;
    if (row.repeats) name += "...";
    result += row.required ? ' ' + name : fmt::format(" [{}]", name);
  }
  if (!page.arguments.empty()) result += fmt::format(" {}", page.arguments);
  return result + '\n';
}

}  // namespace

std::string help_line(std::string_view name, std::string_view text) {
  const auto head = fmt::format("  {}", name);
  const auto gap = head.size() < kTextColumn ? "" : fmt::format("\n{:{}}", "", kTextColumn);
  return fmt::format("{:<{}}{}{}\n", head, kTextColumn, gap, text);
}

std::string help_text(const HelpPage& page) {
  std::string positionals;
  std::vector<std::string_view> groups;
  std::vector<std::string> texts;  // of each group
  for (const OptionRow& row : page.rows) {
    const auto names = split_names(row);
    const auto row_facts = facts(row, page.rows, page.defaults);
    if (!names.positional.empty()) {
      positionals += help_line(names.positional + row_facts, row.help);
    }
    if (names.names.empty()) continue;
    const auto group = std::ranges::find(groups, row.group);
    const auto place = static_cast<std::size_t>(group - groups.begin());
    if (group == groups.end()) {
      groups.push_back(row.group);
      texts.emplace_back();
    }
    texts[place] += help_line(fmt::format("{}", fmt::join(names.names, ",")) + row_facts, row.help);
  }
  std::string result = fmt::format("{}\n{}", page.description, usage(page));
  if (!positionals.empty()) result += "\nPositionals:\n" + positionals;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    result += fmt::format("\n{}:\n{}", groups[i].empty() ? "Options" : groups[i], texts[i]);
  }
  result += page.list;
  if (!page.footer.empty()) result += fmt::format("\n{}\n", page.footer);
  return result;
}

}  // namespace tubed::options
