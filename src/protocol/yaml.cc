#include "protocol/yaml.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/planted.h"
#include "engine/types.h"
#include "text/ascii.h"

namespace tubed::protocol {

namespace {

void append_number(std::string& text, std::uint64_t value) {
  char digits[20];
  const auto result = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, result.ptr);
}

// The two versions of YAML, and parsers of one version, differ in their notations of numbers, words
// and dates. The functions below accept all notations that the name of a tube can have.

constexpr bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

// YAML 1.1 and many parsers of 1.2 ignore underscores in numbers.
constexpr bool is_yaml_digit(char c) {
  return is_decimal(c) || c == '_';
}

constexpr bool is_letter(char c) {
  return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z';
}

// Removes the characters at the beginning of `text` that `matches` accepts, and returns their
// number.
template <class Matches>
std::size_t skip(std::string_view& text, const Matches& matches) {
  const auto end = std::ranges::find_if_not(text, matches);
  const auto count = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(count);
  return count;
}

void skip_sign(std::string_view& text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
}

// `0b101`, `0o17`, `0xFF`. The octal numbers of YAML 1.1, such as `017`, look like decimal numbers.
bool has_base(std::string_view text) {
  if (!text.starts_with('0')) return false;
  text.remove_prefix(1);
  skip(text, [](char c) { return c == '_'; });
  if (text.size() < 2) return false;
  const char base = ascii_lower(text.front());
  text.remove_prefix(1);
  return std::ranges::all_of(text, [base](char c) {
    if (base == 'b') return c == '0' || c == '1' || c == '_';
    if (base == 'o') return is_yaml_digit(c) && c != '8' && c != '9';
    return base == 'x' && (is_yaml_digit(c) || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'f'));
  });
}

// A dot without digits is a number by the letter of YAML 1.1. `1.2.3` is none for any parser.
bool reads_as_number(std::string_view text) {
  if (text.starts_with('_')) return false;
  skip_sign(text);
  if (has_base(text)) return true;
  const bool has_digits = skip(text, is_yaml_digit) > 0;
  const bool has_point = text.starts_with('.');
  if (!has_digits && !has_point) return false;
  if (has_point) text.remove_prefix(1);
  skip(text, is_yaml_digit);
  if (text.empty()) return true;
  if (ascii_lower(text.front()) != 'e') return false;
  text.remove_prefix(1);
  skip_sign(text);
  return skip(text, is_yaml_digit) > 0 && text.empty();
}

// A truth value or null. The parser of Ruby ignores the case of letters.
bool reads_as_word(std::string_view text) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"y", "n", "yes", "no", "on", "off", "true", "false", "null"});
  constexpr std::size_t kLongest = 5;
  return text.size() <= kLongest && std::ranges::any_of(kWords, [&](std::string_view word) {
           return equal_but_for_case(word, text);
         });
}

// Infinity or no number.
bool reads_as_no_number(std::string_view text) {
  skip_sign(text);
  return equal_but_for_case(text, ".inf") || equal_but_for_case(text, ".nan");
}

// `2026-01-31`; in Ruby and Go also `2026-1-31`.
bool reads_as_date(std::string_view text) {
  if (skip(text, is_decimal) != 4) return false;
  for (int part = 0; part < 2; ++part) {
    if (!text.starts_with('-')) return false;
    text.remove_prefix(1);
    const std::size_t digits = skip(text, is_decimal);
    if (digits < 1 || digits > 2) return false;
  }
  return text.empty();
}

}  // namespace

bool is_plain_yaml(std::string_view text) {
  // A name has no character with a meaning in YAML, except a hyphen, with which it does not begin.
  // Without colons it is no sexagesimal number and no time.
  if (!is_tube_name(text) || TUBED_PLANTED(names_are_always_quoted)) return false;
  if (is_letter(text.front())) return !reads_as_word(text);
  return !reads_as_number(text) && !reads_as_no_number(text) && !reads_as_date(text);
}

void YamlBlock::number(std::string_view key, std::uint64_t value) {
  text_.append(key).append(": ");
  append_number(text_, value);
  text_.push_back('\n');
}

void YamlBlock::plain(std::string_view key, std::string_view value) {
  text_.append(key).append(": ").append(value).push_back('\n');
}

void YamlBlock::text(std::string_view key, std::string_view value) {
  if (is_plain_yaml(value)) {
    plain(key, value);
  } else {
    text_.append(key).append(": \"").append(value).append("\"\n");
  }
}

void YamlBlock::seconds(std::string_view key, Duration value) {
  constexpr std::int64_t kMicroseconds = 1'000'000;
  const auto total = std::chrono::duration_cast<std::chrono::microseconds>(value).count();
  std::string fraction = std::to_string(total % kMicroseconds);
  fraction.insert(0, 6 - fraction.size(), '0');
  plain(key, std::to_string(total / kMicroseconds) + "." + fraction);
}

void YamlBlock::item(std::string_view value) {
  text_.append("- ").append(value).push_back('\n');
}

}  // namespace tubed::protocol
