// A value has three spellings: an integer of TOML, a text (a flag's argument or a string of TOML),
// and the shortest text that reads back to it, for --print-config and the documentation. All
// numbers are kept in the smallest unit (bytes, nanoseconds). A number that 64 bits do not hold
// becomes the nearest number that they hold, which is outside of all bounds.
//
// Reading: value_from_integer() and value_from_text() convert to the smallest unit, check the
// bounds and name the expected form in the error. Writing: to_text() chooses the largest unit that
// divides the value, so the result is short and exact; to_toml() adds quotes where TOML needs them.
// The helpers at the end make text from a file or a command line safe for a log line: control
// characters could change the state of a terminal.
#include "config/value.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "base/planted.h"
#include "config/settings.h"
#include "text/numbers.h"
#include "text/quoting.h"
#include "text/units.h"
#include "text/utf8.h"

namespace tubed::config {
namespace {

constexpr std::uint32_t kMaxMode = 0777;
constexpr std::string_view kAlways = "always";
constexpr std::string_view kNever = "never";
constexpr std::string_view kEmpty = "is empty; for the default, leave it out";

bool is_time(Kind kind) {
  return kind == Kind::duration || kind == Kind::sync;
}

// Empty for kinds whose numbers take no unit.
std::span<const QuantityUnit> units_of(Kind kind) {
  if (kind == Kind::bytes) return kSizeUnits;
  if (is_time(kind)) return kTimeUnits;
  return {};
}

bool is_number(Kind kind) {
  return kind == Kind::count || kind == Kind::bytes || kind == Kind::duration;
}

// Precondition: a time is a whole number of milliseconds, which the bounds of the table guarantee.
std::string number_text(Kind kind, std::int64_t number) {
  TUBED_ASSERT(!is_time(kind) || number % kMillisecondSize == 0);
  return quantity_text(number, units_of(kind));
}

// `spelling`: the number as given, for the error.
Result<Value> within_bounds(const Type& type, std::int64_t number, std::string_view spelling) {
  if (type.kind == Kind::sync && number == kSyncAlways.count()) return Value(number);
  if (number < type.minimum) {
    return Error{fmt::format("{} is below the minimum of {}", printable(spelling),
                             number_text(type.kind, type.minimum))};
  }
  if (number > type.maximum) {
    return Error{fmt::format("{} is above the maximum of {}", printable(spelling),
                             number_text(type.kind, type.maximum))};
  }
  return Value(number);
}

// A number beyond 64 bits saturates, and the error names the bound that it exceeds.
Result<Value> number_from_text(const Type& type, std::string_view text) {
  const auto quantity =
      parse_quantity<std::int64_t>(text, units_of(type.kind), is_time(type.kind) ? kSecondSize : 1);
  if (!quantity) return Error{fmt::format("{} is not {}", in_quotes(text), expected(type))};
  return within_bounds(type, quantity->number, text);
}

// An interval of 0 has the same value as "always".
Result<Value> sync_from_text(const Type& type, std::string_view text) {
  if (text == kAlways) return Value(std::int64_t{kSyncAlways.count()});
  if (text == kNever) return Value(std::int64_t{kSyncNever.count()});
  return number_from_text(type, text);
}

// The value is the index of the word, which is also the value of the enumeration.
Result<Value> choice_from_text(const Type& type, std::string_view text) {
  const auto found = std::ranges::find(type.choices, text);
  if (found == type.choices.end()) {
    return Error{fmt::format("{} is not {}", in_quotes(text), expected(type))};
  }
  return Value(static_cast<std::int64_t>(found - type.choices.begin()));
}

// Octal, with or without a leading zero, as chmod(1) takes it.
Result<Value> mode_from_text(const Type& type, std::string_view text) {
  const auto mode = parse_number<std::uint32_t>(text, 8);
  if (!mode || *mode > kMaxMode) {
    return Error{fmt::format("{} is not {}", in_quotes(text), expected(type))};
  }
  return Value(std::int64_t{*mode});
}

// "a,b" as a and b; nothing for the empty text.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// `is_empty`: of a text or a list.
bool is_refused(const Type& type, bool is_empty) {
  return is_empty && !type.may_be_empty && !TUBED_PLANTED(empty_is_the_default);
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

std::string toml_string(std::string_view text) {
  return quoted(text, kUnicodeEscape);
}

}  // namespace

Result<Value> value_from_integer(const Type& type, std::int64_t number) {
  if (!is_number(type.kind) && type.kind != Kind::sync) {
    return Error{fmt::format("expected {}, not an integer", expected(type))};
  }
  return number_from_text(type, fmt::to_string(number));
}

Result<Value> value_from_list(const Type& type, std::vector<std::string> texts) {
  if (is_refused(type, texts.empty())) return Error{std::string(kEmpty)};
  for (const std::string& text : texts) {
    if (text.empty() || !is_plain_text(text)) {
      return Error{
          fmt::format("{} is empty, has control characters or is not UTF-8", in_quotes(text))};
    }
    if (!type.choices.empty() && std::ranges::find(type.choices, text) == type.choices.end()) {
      return Error{
          fmt::format("{} is not one of {}", in_quotes(text), fmt::join(type.choices, ", "))};
    }
  }
  return Value(std::move(texts));
}

Result<Value> value_from_text(const Type& type, std::string_view text) {
  switch (type.kind) {
    case Kind::count:
    case Kind::bytes:
    case Kind::duration:
      return number_from_text(type, text);
    case Kind::sync:
      return sync_from_text(type, text);
    case Kind::truth:
    case Kind::choice:
      return choice_from_text(type, text);
    case Kind::mode:
      return mode_from_text(type, text);
    case Kind::address: {
      if (text.empty() && type.may_be_empty) return Value(std::string());
      if (type.may_be_named) {
        const auto named = TRY(parse_named(text, type.port));
        if (named) return Value(to_string(*named));
      }
      const auto listen = TRY(parse_listen(text, type.port, type.may_be_named));
      return Value(to_string(listen));
    }
    case Kind::list:
      return value_from_list(type, parts_of(text));
    case Kind::text:
      break;
  }
  if (is_refused(type, text.empty())) return Error{std::string(kEmpty)};
  if (!is_plain_text(text)) {
    return Error{fmt::format("{} has control characters or is not UTF-8", in_quotes(text))};
  }
  return Value(std::string(text));
}

std::string to_text(const Type& type, const Value& value) {
  if (type.kind == Kind::list) return fmt::format("{}", fmt::join(value.list, ","));
  if (value.holds != Value::Holds::number) return value.text;
  if (type.kind == Kind::choice || type.kind == Kind::truth)
    return std::string(type.choices[static_cast<std::size_t>(value.number)]);
  if (type.kind == Kind::mode) return fmt::format("{:04o}", value.number);
  if (type.kind == Kind::sync && value.number == kSyncAlways.count()) return std::string(kAlways);
  if (type.kind == Kind::sync && value.number == kSyncNever.count()) return std::string(kNever);
  return number_text(type.kind, value.number);
}

std::string to_toml(const Type& type, const Value& value) {
  if (type.kind == Kind::list) {
    std::vector<std::string> strings;
    std::ranges::transform(value.list, std::back_inserter(strings), toml_string);
    return fmt::format("[{}]", fmt::join(strings, ", "));
  }
  const auto text = to_text(type, value);
  const bool is_bare = type.kind == Kind::truth || (is_number(type.kind) && !text.empty() &&
                                                    text.back() >= '0' && text.back() <= '9');
  return is_bare ? text : toml_string(text);
}

std::string expected(const Type& type) {
  switch (type.kind) {
    case Kind::count:
      return "a whole number";
    case Kind::bytes:
      return "a number of bytes or a size such as \"64KiB\"";
    case Kind::duration:
      return "a number of seconds or a duration such as \"50ms\" or \"5m\"";
    case Kind::sync:
      return "\"always\", \"never\" or a duration such as \"50ms\"";
    case Kind::truth:
      return "true or false";
    case Kind::choice:
      return fmt::format("one of {}", fmt::join(type.choices, ", "));
    case Kind::text:
      return "a string";
    case Kind::address:
      return fmt::format("an address such as \"127.0.0.1:{}\"", type.port);
    case Kind::mode:
      return "an octal mode such as \"0660\"";
    case Kind::list:
      if (!type.choices.empty()) return fmt::format("some of {}", fmt::join(type.choices, ", "));
      return "an array of strings";
  }
  return "";
}

std::string bounds(const Type& type) {
  if (!type.choices.empty()) return fmt::format("{}", fmt::join(type.choices, ", "));
  if (type.kind == Kind::mode) return "0000 to 0777";
  if (!is_number(type.kind) && type.kind != Kind::sync) return "";
  const auto range = fmt::format("{} to {}", number_text(type.kind, type.minimum),
                                 number_text(type.kind, type.maximum));
  if (type.kind == Kind::sync) return fmt::format("{}, {} or {}", kAlways, kNever, range);
  return fmt::format("{}: {}", type.unit, range);
}

std::string placeholder(const Type& type) {
  switch (type.kind) {
    case Kind::count:
      return "N";
    case Kind::bytes:
      return "SIZE";
    case Kind::duration:
      return "TIME";
    case Kind::sync:
      return "WHEN";
    case Kind::truth:
    case Kind::choice:
      return "WORD";
    case Kind::text:
    case Kind::list:
      return std::string(type.unit);
    case Kind::address:
      return "ADDR";
    case Kind::mode:
      return "MODE";
  }
  return "";
}

bool is_plain_text(std::string_view text) {
  return is_utf8(text) && std::ranges::none_of(text, is_control);
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMaxShownBytes = 200;
  std::string result;
  while (!text.empty() && result.size() < kMaxShownBytes) {
    const auto count = character_bytes(text);
    if (count == 0 || is_control(text.front())) {
      result += '?';
      text.remove_prefix(1);
      continue;
    }
    result += text.substr(0, count);
    text.remove_prefix(count);
  }
  return text.empty() ? result : result + "...";
}

std::string in_quotes(std::string_view text) {
  return fmt::format("\"{}\"", printable(text));
}

}  // namespace tubed::config
