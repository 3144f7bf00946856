// normalized() checks the text of a value against the type of its row and brings it to the form
// that the member's parser reads: a plain decimal number for numbers, times and sizes, the text
// itself otherwise. So units exist only here, and the rest of a program sees seconds, milliseconds
// and bytes.
#include "options/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text/numbers.h"

namespace tubed::options {
namespace {

using UnitRow = std::pair<std::string_view, std::uint64_t>;

constexpr std::array<UnitRow, 5> kSecondUnits{
    {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86'400}}};
constexpr std::array<UnitRow, 6> kMillisecondUnits{
    {{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
constexpr std::array<UnitRow, 4> kByteUnits{
    {{"", 1}, {"KiB", 1U << 10}, {"MiB", 1U << 20}, {"GiB", 1U << 30}}};
constexpr std::array<UnitRow, 1> kNoUnits{{{"", 1}}};
constexpr std::string_view kMilliseconds = "ms";

// Nothing: not a number, an unknown unit, or a value beyond 64 bits.
std::optional<std::uint64_t> whole_value(std::string_view text, std::span<const UnitRow> units) {
  const auto number = take_number<std::uint64_t>(text);
  const auto unit = std::ranges::find(units, text, &UnitRow::first);
  std::uint64_t value = 0;
  if (!number || unit == units.end() || __builtin_mul_overflow(*number, unit->second, &value)) {
    return std::nullopt;
  }
  return value;
}

// "ms" is only a unit of times, which have more than one unit; a plain number has only the empty
// unit.
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

// A range without an upper bound is written as "from N on".
std::string range_in_words(std::uint64_t least, std::uint64_t most) {
  if (most == std::numeric_limits<std::uint64_t>::max()) return fmt::format("from {} on", least);
  return fmt::format("from {} to {}", least, most);
}

// The number that `read` finds in the text, if it is in the range.
template <class Number, class Read>
Result<std::string> ranged(std::string_view text, Number min, Number max,
                           const std::string& expected, Read read) {
  const auto number = read(text);
  if (!number || *number < min || *number > max) return not_a_value(text, expected);
  return fmt::format("{}", *number);
}

Result<std::string> whole_number(const ValueType& type, std::string_view text,
                                 const std::string& expected, std::span<const UnitRow> units) {
  return ranged(text, type.min, type.max, expected,
                [units](std::string_view word) { return whole_value(word, units); });
}

Result<std::string> fraction(const ValueType& type, std::string_view text,
                             const std::string& expected, std::span<const UnitRow> units) {
  return ranged(text, type.min_number, type.max_number, expected,
                [units](std::string_view word) { return fractional_value(word, units); });
}

}  // namespace

Error not_a_value(std::string_view text, std::string_view expected) {
  return Error{fmt::format("\"{}\" is not {}", text.substr(0, 40), expected)};
}

Result<std::string> normalized(const ValueType& type, std::string_view text) {
  using Kind = ValueType::Kind;
  const auto range = range_in_words(type.min, type.max);
  switch (type.kind) {
    case Kind::flag:
    case Kind::text:
    case Kind::tube:
    case Kind::file:
    case Kind::command:
      if (type.check != nullptr) TRY(type.check(text));
      return std::string(text);
    case Kind::choice:
      if (std::ranges::find(type.choices, text) != type.choices.end()) return std::string(text);
      return Error{fmt::format("{} not in {{{}}}", text, fmt::join(type.choices, ","))};
    case Kind::count:
      return whole_number(type, text, "a whole number " + range, kNoUnits);
    case Kind::number:
      return fraction(
          type, text,
          fmt::format("a number from {:.10g} to {:.10g}", type.min_number, type.max_number),
          kNoUnits);
    case Kind::seconds:
      return whole_number(
          type, text, fmt::format("a time in whole seconds {}, as 90, 90s, 5m, 2h or 1d", range),
          kSecondUnits);
    case Kind::milliseconds:
      return whole_number(type, text,
                          fmt::format("a time in seconds {}, as 90, 90s, 500ms, 5m, 2h or 1d",
                                      range_in_words(type.min / 1000, type.max / 1000)),
                          kMillisecondUnits);
    case Kind::time:
      return fraction(
          type, text,
          fmt::format("a time in seconds from {:.10g} to {:.10g}, as 90, 0.5, 50ms, 5m or 2h",
                      type.min_number, type.max_number),
          kSecondUnits);
    case Kind::size:
      return whole_number(type, text,
                          fmt::format("a size in bytes {}, as 65535, 64KiB or 1GiB", range),
                          kByteUnits);
  }
  return std::string(text);
}

}  // namespace tubed::options
