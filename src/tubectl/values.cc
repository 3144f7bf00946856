#include "tubectl/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tubed::tubectl {
namespace {

using UnitRow = std::pair<std::string_view, std::uint64_t>;

constexpr std::array<UnitRow, 5> kSecondUnits{
    {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86'400}}};
constexpr std::array<UnitRow, 4> kByteUnits{
    {{"", 1}, {"KiB", 1U << 10}, {"MiB", 1U << 20}, {"GiB", 1U << 30}}};
constexpr std::array<UnitRow, 1> kNoUnits{{{"", 1}}};
constexpr std::string_view kMilliseconds = "ms";

// Nothing: no number, an unknown unit, or more than 64 bits hold.
std::optional<std::uint64_t> whole_value(std::string_view text, std::span<const UnitRow> units) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc()) return std::nullopt;
  const std::string_view unit(read.ptr, static_cast<std::size_t>(end - read.ptr));
  const auto found = std::ranges::find(units, unit, &UnitRow::first);
  if (found == units.end() || __builtin_mul_overflow(number, found->second, &number)) {
    return std::nullopt;
  }
  return number;
}

std::optional<double> fractional_value(std::string_view text, std::span<const UnitRow> units) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || !std::isfinite(number)) return std::nullopt;
  const std::string_view unit(read.ptr, static_cast<std::size_t>(end - read.ptr));
  if (unit == kMilliseconds && units.size() > 1) return number / 1000;
  const auto found = std::ranges::find(units, unit, &UnitRow::first);
  if (found == units.end()) return std::nullopt;
  return number * static_cast<double>(found->second);
}

std::string range_in_words(std::uint64_t least, std::uint64_t most) {
  if (most == std::numeric_limits<std::uint64_t>::max()) return fmt::format("from {} on", least);
  return fmt::format("from {} to {}", least, most);
}

std::string not_a_value(std::string_view text, std::string_view expected) {
  return fmt::format("\"{}\" is not {}", text.substr(0, 40), expected);
}

// Rewrites the text as the number that `read` finds in it, if that is in the range.
template <class Number, class Read>
CLI::Validator ranged(Number least, Number most, std::string expected, Read read) {
  return CLI::Validator(
      [least, most, expected = std::move(expected), read](std::string& text) {
        const auto number = read(std::string_view(text));
        if (!number || *number < least || *number > most) return not_a_value(text, expected);
        text = fmt::format("{}", *number);
        return std::string();
      },
      "");
}

}  // namespace

CLI::Validator is_count(std::uint64_t least, std::uint64_t most) {
  return ranged(least, most, "a whole number " + range_in_words(least, most),
                [](std::string_view text) { return whole_value(text, kNoUnits); });
}

CLI::Validator is_number(double least, double most) {
  return ranged(least, most, fmt::format("a number from {:.10g} to {:.10g}", least, most),
                [](std::string_view text) { return fractional_value(text, kNoUnits); });
}

CLI::Validator is_seconds(std::uint64_t most) {
  return ranged(
      std::uint64_t{0}, most,
      fmt::format("a time in whole seconds {}, as 90, 90s, 5m, 2h or 1d", range_in_words(0, most)),
      [](std::string_view text) { return whole_value(text, kSecondUnits); });
}

CLI::Validator is_time(double least, double most) {
  return ranged(least, most,
                fmt::format("a time in seconds from {:.10g} to {:.10g}, as 90, 0.5, 50ms, 5m or 2h",
                            least, most),
                [](std::string_view text) { return fractional_value(text, kSecondUnits); });
}

CLI::Validator is_size(std::uint64_t least, std::uint64_t most) {
  return ranged(
      least, most,
      fmt::format("a size in bytes {}, as 65535, 64KiB or 1GiB", range_in_words(least, most)),
      [](std::string_view text) { return whole_value(text, kByteUnits); });
}

}  // namespace tubed::tubectl
