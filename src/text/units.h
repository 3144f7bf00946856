// Sizes and times in text, such as 64KiB and 90s.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace tubed {

struct QuantityUnit {
  std::string_view name;
  std::int64_t size;
};

// Bytes, the larger units first.
inline constexpr auto kSizeUnits = std::to_array<QuantityUnit>({{"PiB", 1LL << 50},
                                                                {"TiB", 1LL << 40},
                                                                {"GiB", 1LL << 30},
                                                                {"MiB", 1LL << 20},
                                                                {"KiB", 1024}});
// Nanoseconds, the larger units first.
inline constexpr std::int64_t kMillisecondSize = 1'000'000;
inline constexpr std::int64_t kSecondSize = 1000 * kMillisecondSize;
inline constexpr auto kTimeUnits = std::to_array<QuantityUnit>({{"d", 86'400 * kSecondSize},
                                                                {"h", 3'600 * kSecondSize},
                                                                {"m", 60 * kSecondSize},
                                                                {"s", kSecondSize},
                                                                {"ms", kMillisecondSize}});

// Returns the size of the unit `name`, or `plain` if `name` is empty. Nothing: the unit is unknown.
std::optional<std::int64_t> unit_size(std::string_view name, std::span<const QuantityUnit> units,
                                      std::int64_t plain);

template <std::integral Number>
struct Quantity {
  Number number = 0;  // the nearest that the type holds
  bool fits = true;
};

// Reads a whole number and its unit, as a multiple of `resolution`. A number without a unit has the
// size `plain`. Nothing: `text` is not of this form. O(text).
template <std::integral Number>
std::optional<Quantity<Number>> parse_quantity(std::string_view text,
                                               std::span<const QuantityUnit> units,
                                               std::int64_t plain, std::int64_t resolution = 1) {
  using Range = std::numeric_limits<Number>;
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const auto size = unit_size(std::string_view(stop, end), units, plain);
  if (error == std::errc::invalid_argument || !size) return std::nullopt;
  if (error == std::errc() && !__builtin_mul_overflow(number, *size / resolution, &number))
    return Quantity<Number>{number};
  return Quantity<Number>{text.starts_with('-') ? Range::min() : Range::max(), false};
}

// Returns a time as its two largest units: "25s", "1m25s", "2h05m", "3d04h".
std::string time_in_words(std::uint64_t seconds);

// Returns the number in the largest unit that divides it: "64KiB", "90s", "0".
std::string quantity_text(std::int64_t number, std::span<const QuantityUnit> units);

}  // namespace tubed
