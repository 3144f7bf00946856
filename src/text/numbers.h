// Whole numbers in text: digits alone, without a sign, spaces or a prefix.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace tubed {

// Takes a number, all leading digits, off the front of `text`. Returns nothing and leaves `text`
// unchanged if it does not begin with a digit or the type cannot hold the number. O(digits).
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

// Returns the number that `text` is. Nothing: `text` is not a number, or the type cannot hold it.
// O(text).
template <std::unsigned_integral Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  const auto number = take_number<Number>(text, base);
  return text.empty() ? number : std::nullopt;
}

// Returns the number at the front of `text`, or 0 without a number. O(digits).
template <std::unsigned_integral Number = std::uint64_t>
Number leading_number(std::string_view text) {
  return take_number<Number>(text).value_or(0);
}

}  // namespace tubed
