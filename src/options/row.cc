#include "options/row.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tubed::options {

std::string shown_value(const ValueType& type) {
  if (type.choices.empty()) return std::string(type.placeholder);
  return fmt::format("{}:{{{}}}", type.placeholder, fmt::join(type.choices, ","));
}

const std::string& OptionNames::shown() const {
  const auto is_long = [](const std::string& name) { return name.starts_with("--"); };
  const auto name = std::ranges::find_if(names, is_long);
  if (name != names.end()) return *name;
  return names.empty() ? positional : names.front();
}

OptionNames split_names(const OptionRow& row) {
  std::vector<std::string> letters;
  std::vector<std::string> words;
  OptionNames result;
  std::string_view rest = row.names;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string name(rest.substr(0, comma));
    rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
    if (name.starts_with("--")) {
      words.push_back(name);
    } else if (name.starts_with('-')) {
      letters.push_back(name);
    } else {
      result.positional = name;
    }
  }
  result.names = std::move(letters);
  result.names.insert(result.names.end(), words.begin(), words.end());
  return result;
}

bool has_name(const OptionRow& row, std::string_view name) {
  const auto names = split_names(row);
  return names.positional == name || std::ranges::find(names.names, name) != names.names.end();
}

bool exclude_each_other(const OptionRow& row, const OptionRow& other) {
  const auto excludes = [](const OptionRow& one, const OptionRow& two) {
    return std::ranges::any_of(
        one.excludes, [&](std::string_view name) { return !name.empty() && has_name(two, name); });
  };
  return excludes(row, other) || excludes(other, row);
}

}  // namespace tubed::options
