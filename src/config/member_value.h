// to_value() and assign(): a member of Settings as the Value of its row, and back.
//
// assign() takes a value that the type of the row has accepted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/time.h"
#include "config/listen.h"
#include "config/value.h"

namespace tubed::config {

inline Value to_value(const std::string& text) {
  return text;
}
inline Value to_value(const std::optional<Listen>& listen) {
  return listen ? to_string(*listen) : std::string();
}
inline Value to_value(const std::vector<std::string>& list) {
  return list;
}
inline Value to_value(Duration duration) {
  return std::int64_t{duration.count()};
}
template <class T>
requires(std::is_unsigned_v<T> || std::is_enum_v<T>) Value to_value(T number) {
  return static_cast<std::int64_t>(number);
}

inline std::int64_t number_in(const Value& value) {
  TUBED_ASSERT(value.holds == Value::Holds::number);
  return value.number;
}

inline const std::string& text_in(const Value& value) {
  TUBED_ASSERT(value.holds == Value::Holds::text);
  return value.text;
}

inline void assign(std::string& member, const Value& value) {
  member = text_in(value);
}
inline void assign(std::vector<std::string>& member, const Value& value) {
  TUBED_ASSERT(value.holds == Value::Holds::list);
  member = value.list;
}
inline void assign(std::optional<Listen>& member, const Value& value) {
  member.reset();
  if (text_in(value).empty()) return;
  auto parsed = parse_listen(text_in(value));
  TUBED_ASSERT(parsed);
  member = std::move(*parsed);
}
inline void assign(Duration& member, const Value& value) {
  member = Duration(number_in(value));
}
template <class T>
requires(std::is_unsigned_v<T> || std::is_enum_v<T>) void assign(T& member, const Value& value) {
  member = static_cast<T>(number_in(value));
}

}  // namespace tubed::config
