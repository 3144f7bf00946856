#include "tools/docs/yaml.h"

#include <algorithm>
#include <array>

#include "text/ascii.h"

namespace tubed::docs {

using json::Json;

namespace {

// True: the text needs no quotes.
bool is_plain(std::string_view text) {
  constexpr auto kOther = std::to_array<std::string_view>(
      {"y", "n", "yes", "no", "on", "off", "true", "false", "null"});
  constexpr std::string_view kInside = "0123456789 -_.,;()";
  const auto is_letter = [](char c) { return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z'; };
  if (text.empty() || !is_letter(text.front()) || text.back() == ' ') return false;
  return std::ranges::find(kOther, std::string_view(ascii_lower(text))) == kOther.end() &&
         std::ranges::all_of(
             text, [&](char c) { return is_letter(c) || kInside.find(c) != kInside.npos; });
}

std::string scalar(const Json& value) {
  const std::string* text = value.text();
  return text != nullptr && is_plain(*text) ? *text : to_line(value);
}

bool is_nested(const Json& value) {
  const auto* list = value.elements();
  return value.is_object() ? !value.members().empty() : list != nullptr && !list->empty();
}

// `indent`: of the first line too, except after "- ".
void append(const Json& value, std::size_t indent, std::string& text) {
  const std::string margin(indent, ' ');
  const auto append_value = [&](const Json& inner) {
    if (is_nested(inner)) {
      text += '\n';
      append(inner, indent + 2, text);
    } else {
      text.append(" ").append(scalar(inner)).append("\n");
    }
  };
  if (const auto* list = value.elements()) {
    for (const Json& inner : *list) {
      text.append(margin).append("-");
      const std::size_t begin = text.size();
      append_value(inner);
      // The first line of a nested value follows the dash.
      if (is_nested(inner)) text.replace(begin, indent + 3, " ");
    }
    return;
  }
  for (const auto& [key, inner] : value.members()) {
    text.append(margin).append(scalar(key)).append(":");
    append_value(inner);
  }
}

}  // namespace

std::string to_yaml(const Json& value) {
  std::string text;
  append(value, 0, text);
  return text;
}

}  // namespace tubed::docs
