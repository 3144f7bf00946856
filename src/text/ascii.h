// Letters of ASCII, without the locale: the names of headers, hosts and replies.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace tubed {

constexpr char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// O(text).
inline std::string ascii_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = ascii_lower(c);
  return lower;
}

// True if the texts differ in the case of their letters at most. O(text).
constexpr bool equal_but_for_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](char one, char other) { return ascii_lower(one) == ascii_lower(other); });
}

}  // namespace tubed
