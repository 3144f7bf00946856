// Json: the little of JSON that tubed and tubectl write and read: lines with one object each.
//
// Only json.cc includes nlohmann-json, which is slow to compile. To write, build a value and render
// it by to_line(). Reading a line keeps the scalars of the outermost object; nested objects and
// arrays are checked and dropped. A document is kept whole, but its depth is bounded: hostile text
// cannot make deep values.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tubed::json {

class Reader;

class Json {
 public:
  using Member = std::pair<std::string, Json>;

  Json() = default;  // null
  Json(std::string text) : value_(std::move(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::same_as<bool> auto value) : value_(value) {}
  Json(std::same_as<double> auto value) : value_(value) {}
  // Precondition: not negative.
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) Json(Number number)
      : value_(static_cast<std::uint64_t>(number)) {}
  // An object: {{"id", 7}, {"tube", "mail"}}.
  Json(std::initializer_list<Member> members) : value_(Members(members)) {}

  static Json object() { return Json(Members()); }
  static Json array(std::vector<Json> values) { return Json(std::move(values)); }
  // The object that is all of `line`. Nothing: it is not an object, or not JSON. Of several members
  // with the same key the last value counts. O(line).
  static std::optional<Json> parse(std::string_view line);
  // The value that is all of `text`, with nested values. Nothing: it is not JSON, or has more than
  // kMaxDepth objects and arrays in each other. Otherwise as parse().
  static constexpr std::size_t kMaxDepth = 8;
  static std::optional<Json> parse_document(std::string_view text);

  // The value of the key; adds null for a new key. Members keep the order in which they were added.
  // A null value becomes an object. O(members). Precondition: an object or null.
  Json& operator[](std::string_view key);
  // Null: no member has the key. O(members). Precondition: an object.
  const Json* find(std::string_view key) const;
  // Precondition: an object.
  const std::vector<Member>& members() const { return std::get<Members>(value_); }

  bool is_object() const { return std::holds_alternative<Members>(value_); }
  // Null: the value is not an array.
  const std::vector<Json>* elements() const { return std::get_if<Array>(&value_); }
  // Nothing: the value is neither true nor false.
  std::optional<bool> truth() const;
  // Null: the value is not text.
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  // Nothing: the value is not a whole number from 0 to 2^64 - 1.
  std::optional<std::uint64_t> number() const;

  friend bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

 private:
  using Members = std::vector<Member>;
  using Array = std::vector<Json>;

  friend void append(const Json& value, std::string& line);
  friend class Reader;
  explicit Json(Members members) : value_(std::move(members)) {}
  explicit Json(Array values) : value_(std::move(values)) {}

  std::variant<std::monostate, bool, std::uint64_t, double, std::string, Members, Array> value_;
};

// Appends the text as a JSON string, in quotes, as to_line() does. O(text).
void append_text(std::string_view text, std::string& line);

// One line, without its end. Bytes that are not UTF-8 become U+FFFD, and control characters are
// escaped, those beyond ASCII too: a terminal may obey them.
std::string to_line(const Json& value);

// --- A job's body: as text if it is UTF-8, else in base64; no byte is lost

// The key "body" or "body_base64", and the value.
std::pair<std::string_view, std::string> body_member(std::string_view body);
// Sets that member.
void set_body(Json& object, std::string_view body);
// Reads what set_body() has set. The Error says what is wrong.
Result<std::string> body_of(const Json& object);

// [RFC 4648, section 4]
std::string to_base64(std::string_view bytes);
// An Error unless it is whole and padded.
Result<std::string> from_base64(std::string_view text);

}  // namespace tubed::json
