// The types of rows, for the tables of settings, listeners and roles.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/time.h"
#include "config/value.h"

namespace tubed::config::types {

// In the order of AuthMode.
inline constexpr auto kAuthentications =
    std::to_array<std::string_view>({"none", "token", "mtls", "peer"});
// In the order of HttpApiLevel.
inline constexpr auto kHttpApiLevels = std::to_array<std::string_view>({"off", "read", "full"});
// Colors that CSS knows by these names.
inline constexpr auto kHttpColors = std::to_array<std::string_view>(
    {"red", "orange", "yellow", "green", "teal", "blue", "purple", "pink", "brown", "gray"});
// The longest http.title, in bytes.
inline constexpr std::size_t kMostTitleBytes = 64;
// In the order of TlsVersion.
inline constexpr auto kTlsVersions = std::to_array<std::string_view>({"1.2", "1.3"});

// Of a boolean.
inline constexpr auto kTruths = std::to_array<std::string_view>({"false", "true"});

constexpr Type count(std::string_view unit, std::int64_t minimum, std::int64_t maximum) {
  return {.kind = Kind::count, .unit = unit, .minimum = minimum, .maximum = maximum};
}
constexpr Type bytes(std::int64_t minimum, std::int64_t maximum) {
  return {.kind = Kind::bytes, .unit = "bytes", .minimum = minimum, .maximum = maximum};
}
constexpr Type duration(Duration minimum, Duration maximum) {
  return {.kind = Kind::duration,
          .unit = "time",
          .minimum = minimum.count(),
          .maximum = maximum.count()};
}
constexpr Type sync(Duration minimum, Duration maximum) {
  return {.kind = Kind::sync, .minimum = minimum.count(), .maximum = maximum.count()};
}
constexpr Type text(std::string_view placeholder) {
  return {.kind = Kind::text, .unit = placeholder};
}
constexpr Type text_or_none(std::string_view placeholder) {
  return {.kind = Kind::text, .unit = placeholder, .may_be_empty = true};
}
constexpr Type list(std::string_view placeholder) {
  return {.kind = Kind::list, .unit = placeholder};
}
constexpr Type list_or_none(std::string_view placeholder) {
  return {.kind = Kind::list, .unit = placeholder, .may_be_empty = true};
}
constexpr Type truth() {
  return {.kind = Kind::truth, .minimum = 0, .maximum = 1, .choices = kTruths};
}
constexpr Type choice(std::span<const std::string_view> choices) {
  return {.kind = Kind::choice, .choices = choices};
}

}  // namespace tubed::config::types
