// The names and defaults that are derived from the rows of settings and flags.
#include <algorithm>

#include <fmt/format.h>

#include "config/table.h"

namespace tubed::config {

Value Setting::default_value() const {
  if (type.kind == Kind::text || type.kind == Kind::address) return std::string(default_text);
  if (type.kind == Kind::list) return std::vector<std::string>();
  return default_number;
}

bool Setting::can_be_written(const Value& value) const {
  const bool is_empty = value.text.empty() && value.list.empty();
  const bool has_parts = value.holds == Value::Holds::text || value.holds == Value::Holds::list;
  return !has_parts || !is_empty || type.may_be_empty;
}

std::string Setting::flag() const {
  std::string result = fmt::format("--{}", key);
  std::ranges::replace(result, '.', '-');
  std::ranges::replace(result, '_', '-');
  return result;
}

std::string_view Setting::name() const {
  return key.substr(key.find('.') + 1);
}

std::string_view Setting::first_sentence() const {
  return first_sentence_of(doc);
}

std::string Option::names() const {
  std::string result;
  if (short_flag) result = fmt::format("-{}", short_flag);
  if (!long_flag.empty()) result += fmt::format("{}{}", result.empty() ? "" : ", ", long_flag);
  if (argument.empty()) return result;
  result += argument_is_optional ? fmt::format("[={}]", argument) : fmt::format(" {}", argument);
  return result;
}

std::string shown_flag(char short_flag, std::string_view long_flag) {
  if (!short_flag) return std::string(long_flag);
  if (long_flag.empty()) return fmt::format("-{}", short_flag);
  return fmt::format("-{}/{}", short_flag, long_flag);
}

std::string shown_flag(const Setting& row) {
  return shown_flag(row.short_flag, row.flag());
}

std::string_view first_sentence_of(std::string_view doc) {
  const auto stop = doc.find(". ");
  return stop == std::string_view::npos ? doc : doc.substr(0, stop + 1);
}

}  // namespace tubed::config
