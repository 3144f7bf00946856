// The values of settings: types, bounds, and conversion from and to text.
//
// Knows no key and no file. The texts of to_text() and to_toml() read back to the same value.
//
// Errors are reasons only: the caller adds the flag, or the file, line and key. All functions are
// pure; the cost is proportional to the text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/listen.h"

namespace tubed::config {

// A sync is "always", "never" or a duration.
enum class Kind : std::uint8_t {
  count,
  bytes,
  duration,
  sync,
  truth,  // a boolean
  choice,
  text,
  address,
  mode,
  list,  // of texts, or of words if the type has choices
};

// One value of any type. A number is bytes, nanoseconds, a truth value (1: true), the index of a
// choice, or permissions. The
// number of a sync is kSyncAlways, kSyncNever or an interval in nanoseconds.
struct Value {
  enum class Holds : std::uint8_t { nothing, number, text, list };

  Value() = default;  // not given, which only keys of listeners and roles allow
  Value(std::int64_t n) : holds(Holds::number), number(n) {}
  Value(std::string t) : holds(Holds::text), text(std::move(t)) {}
  Value(std::vector<std::string> l) : holds(Holds::list), list(std::move(l)) {}

  friend bool operator==(const Value&, const Value&) = default;

  Holds holds = Holds::nothing;
  std::int64_t number = 0;
  std::string text;
  std::vector<std::string> list;
};

// The bounds are inclusive. A duration has bounds in nanoseconds that are whole milliseconds; the
// bounds of a sync apply to its interval.
struct Type {
  Kind kind = Kind::text;
  std::string_view unit = {};  // of a count, the noun; of a text, the placeholder in --help
  std::int64_t minimum = 0;
  std::int64_t maximum = 0;
  std::span<const std::string_view> choices = {};
  std::uint16_t port = kDefaultPort;  // of an address: the default port
  // Of an address, a text or a list. False: an empty value is refused, since leaving the key out
  // may allow more than nothing.
  bool may_be_empty = false;
  bool may_be_named = false;  // of an address: its host may be the name of a host
};

// Reads an integer of TOML: bytes for sizes, seconds for durations; a sync of 0 is always. The
// error is the reason only.
Result<Value> value_from_integer(const Type& type, std::int64_t number);

// Reads a flag's argument or a string of TOML; the parts of a list are separated by commas. The
// error is the reason only.
Result<Value> value_from_text(const Type& type, std::string_view text);

// Reads an array of strings of TOML. The error is the reason only.
Result<Value> value_from_list(const Type& type, std::vector<std::string> texts);

// The shortest exact spelling that a flag takes: "64KiB", "90s", "224".
std::string to_text(const Type& type, const Value& value);

// The same as a TOML value: strings are quoted.
std::string to_toml(const Type& type, const Value& value);

// "a whole number": the expected type, for an error.
std::string expected(const Type& type);

// "connections: 1 to 1000000" or "auto, text, journald or json"; empty for free text.
std::string bounds(const Type& type);

// The placeholder of the argument in --help: "N", "SIZE".
std::string placeholder(const Type& type);

// True for UTF-8 without control characters: it fits on one line and into a string of TOML.
bool is_plain_text(std::string_view text);

// For an error: in double quotes, unprintable bytes as '?', cut after 200 bytes.
std::string in_quotes(std::string_view text);

// As in_quotes(), without the quotes.
std::string printable(std::string_view text);

}  // namespace tubed::config
