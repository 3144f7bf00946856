#include "tools/docs/document.h"

#include <algorithm>
#include <array>

#include "json/json.h"

namespace tubed::docs {

namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// True: the text needs no quotes.
bool is_plain(std::string_view text) {
  constexpr auto kOther = std::to_array<std::string_view>(
      {"y", "n", "yes", "no", "on", "off", "true", "false", "null"});
  constexpr std::string_view kInside = "0123456789 -_.,;()";
  if (text.empty() || !is_letter(text.front()) || text.back() == ' ') return false;
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  return std::ranges::find(kOther, std::string_view(lower)) == kOther.end() &&
         std::ranges::all_of(text, [&](char c) {
           return is_letter(c) || kInside.find(c) != std::string_view::npos;
         });
}

void append_text(std::string_view text, std::string& out) {
  if (is_plain(text)) {
    out.append(text);
  } else {
    json::append_text(text, out);
  }
}

}  // namespace

Document& Document::operator[](std::string_view key) {
  Map& map = std::get<Map>(value_);
  const auto found = std::ranges::find(map, key, &Member::first);
  return found != map.end() ? found->second : map.emplace_back(key, Document()).second;
}

bool Document::empty() const {
  const auto* map = std::get_if<Map>(&value_);
  const auto* list = std::get_if<List>(&value_);
  return (map != nullptr && map->empty()) || (list != nullptr && list->empty());
}

std::string Document::to_yaml() const {
  std::string text;
  append_yaml(0, text);
  return text;
}

// Whole lines. `indent`: of the first line too, except after "- ".
void Document::append_yaml(std::size_t indent, std::string& text) const {
  const std::string margin(indent, ' ');
  const auto append_value = [&](const Document& value) {
    if (value.is_nested()) {
      text += '\n';
      return value.append_yaml(indent + 2, text);
    }
    text += ' ';
    value.append_scalar(text);
    text += '\n';
  };
  if (const auto* map = std::get_if<Map>(&value_)) {
    for (const auto& [key, value] : *map) {
      text += margin;
      append_text(key, text);
      text += ':';
      append_value(value);
    }
  } else if (const auto* list = std::get_if<List>(&value_)) {
    for (const Document& value : *list) {
      text.append(margin).append("-");
      const std::size_t begin = text.size();
      append_value(value);
      // The first line of what is nested follows the dash.
      if (value.is_nested()) text.replace(begin, indent + 3, " ");
    }
  }
}

void Document::append_scalar(std::string& text) const {
  if (const auto* scalar = std::get_if<std::string>(&value_)) return append_text(*scalar, text);
  if (std::holds_alternative<Map>(value_)) {
    text += "{}";
  } else if (std::holds_alternative<List>(value_)) {
    text += "[]";
  } else {
    append_json(text);
  }
}

std::string Document::to_json() const {
  std::string text;
  append_json(text);
  return text + '\n';
}

void Document::append_json(std::string& text) const {
  if (const auto* scalar = std::get_if<std::string>(&value_)) {
    json::append_text(*scalar, text);
  } else if (const auto* number = std::get_if<std::uint64_t>(&value_)) {
    text += std::to_string(*number);
  } else if (const auto* truth = std::get_if<bool>(&value_)) {
    text += *truth ? "true" : "false";
  } else if (const auto* map = std::get_if<Map>(&value_)) {
    text += '{';
    for (const auto& [key, value] : *map) {
      if (text.back() != '{') text += ',';
      json::append_text(key, text);
      text += ':';
      value.append_json(text);
    }
    text += '}';
  } else {
    text += '[';
    for (const Document& value : std::get<List>(value_)) {
      if (text.back() != '[') text += ',';
      value.append_json(text);
    }
    text += ']';
  }
}

}  // namespace tubed::docs
