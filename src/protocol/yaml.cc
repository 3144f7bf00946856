#include "protocol/yaml.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/overloaded.h"
#include "base/planted.h"
#include "facts/types.h"
#include "text/ascii.h"

namespace tubed::protocol {

using namespace std::string_view_literals;

namespace {

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

// A dot without digits is a number by the letter of YAML 1.1; no parser takes `1.2.3` for a number.
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

namespace {

// A line, composed on the stack as far as it is short: appending once is cheaper than several
// times.
class YamlLine {
 public:
  explicit YamlLine(std::string& yaml) : yaml_(yaml) {}

  void append(std::string_view part) {
    if (part.size() > room()) return append_long(part);
    end_ = std::copy(part.begin(), part.end(), end_);
  }
  void append(char c) {
    if (room() == 0) flush();
    *end_++ = c;
  }
  void append(std::uint64_t number) {
    if (room() < kMaxDigits) flush();
    end_ = std::to_chars(end_, line_ + sizeof line_, number).ptr;
  }
  void append(const Value& value);
  void finish() {
    append('\n');
    flush();
  }

 private:
  static constexpr std::size_t kMaxDigits = 20;

  std::size_t room() const { return static_cast<std::size_t>(line_ + sizeof line_ - end_); }
  void flush() {
    yaml_.append(line_, static_cast<std::size_t>(end_ - line_));
    end_ = line_;
  }
  void append_long(std::string_view part) {
    flush();
    yaml_.append(part);
  }
  void append_text(std::string_view text);
  void append_list(List list);

  std::string& yaml_;
  char line_[256];
  char* end_ = line_;
};

void YamlLine::append(const Value& value) {
  std::visit(Overloaded{[this](std::uint64_t number) { append(number); },
                        [this](bool truth) { append(truth ? "true"sv : "false"sv); },
                        [this](Duration seconds) { append(seconds_text(seconds)); },
                        [this](Decimal decimal) { append(decimal.digits); },
                        [this](Plain plain) { append(plain.text); },
                        [this](Text text) { append_text(text.text); },
                        [this](List list) { append_list(list); }},
             value);
}

void YamlLine::append_text(std::string_view text) {
  if (is_plain_yaml(text)) return append(text);
  append('"');
  append(text);
  append('"');
}

void YamlLine::append_list(List list) {
  append('[');
  for (std::size_t i = 0; i < list.texts.size(); ++i) {
    if (i > 0) append(", "sv);
    append(std::string_view(list.texts[i]));
  }
  append(']');
}

}  // namespace

std::string seconds_text(Duration value) {
  constexpr std::int64_t kMicroseconds = 1'000'000;
  const auto total = std::chrono::duration_cast<std::chrono::microseconds>(value).count();
  std::string fraction = std::to_string(total % kMicroseconds);
  fraction.insert(0, 6 - fraction.size(), '0');
  return std::to_string(total / kMicroseconds) + "." + fraction;
}

void append_yaml_item(std::string_view name, std::string& yaml) {
  yaml.append("- ").append(name).push_back('\n');
}

namespace {

constexpr std::size_t kShortKeyBytes = 64;

// Appends a number, the most frequent member. Precondition: the key has at most kShortKeyBytes.
void append_number(std::string_view key, std::uint64_t number, std::string& yaml) {
  char line[kShortKeyBytes + 24];
  char* end = std::copy(key.begin(), key.end(), line);
  *end++ = ':';
  *end++ = ' ';
  end = std::to_chars(end, line + sizeof line, number).ptr;
  *end++ = '\n';
  yaml.append(line, static_cast<std::size_t>(end - line));
}

}  // namespace

void YamlBlock::member(std::string_view key, const Value& value) {
  const auto* number = std::get_if<std::uint64_t>(&value);
  if (number != nullptr && key.size() <= kShortKeyBytes) return append_number(key, *number, yaml_);
  YamlLine line(yaml_);
  line.append(key);
  line.append(": "sv);
  line.append(value);
  line.finish();
}

void YamlBlock::begin_table(const Columns& columns) {
  YamlLine line(yaml_);
  line.append('-');
  for (const std::string_view name : columns.names) {
    line.append(' ');
    line.append(name);
  }
  line.finish();
}

void YamlBlock::row(std::span<const Value> values) {
  YamlLine line(yaml_);
  line.append('-');
  for (const Value& value : values) {
    line.append(' ');
    line.append(value);
  }
  line.finish();
}

void YamlBlock::end_table(std::uint64_t next) {
  std::string line = "- next " + std::to_string(next);
  if (looked_) line.append(" looked ").append(std::to_string(*looked_));
  yaml_.insert(begin_, line.append("\n"));
}

std::string yaml_of(const Block& block) {
  std::string yaml;
  YamlBlock sink(yaml);
  block.write(sink);
  return yaml;
}

}  // namespace tubed::protocol
