// Whole numbers in text: digits alone, without a sign, spaces or a prefix.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace tubed {

// Takes a number off the front of `text`, as many digits as there are. Nothing, and `text` is as
// before: no digit is there, or the type cannot hold the number. O(digits).
template <std::unsigned_integral Number>
[[gnu::always_inline]] inline std::optional<Number> take_number(std::string_view& text,
                                                                int base = 10) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc()) return std::nullopt;
  text = std::string_view(stop, end);
  return number;
}

// The number that is all of `text`. Nothing: something else is there, or the type cannot hold the
// number. O(text).
template <std::unsigned_integral Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  const auto number = take_number<Number>(text, base);
  return text.empty() ? number : std::nullopt;
}

// The number at the front of `text`; 0: none is there. O(digits).
template <std::unsigned_integral Number = std::uint64_t>
Number leading_number(std::string_view text) {
  return take_number<Number>(text).value_or(0);
}

}  // namespace tubed
