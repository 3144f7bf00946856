// normalized() checks a value against the type of its row. It converts numbers, times and sizes to
// plain decimal numbers, which the member's parser reads: the rest of a program sees no units.
#include "options/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text/units.h"

namespace tubed::options {
namespace {

constexpr auto kUnitsOfSeconds = std::span(kTimeUnits).first<4>();  // down to the second
constexpr auto kUnitsOfSizes = std::span(kSizeUnits).last<3>();     // up to GiB

// A time without a unit is in seconds.
std::optional<double> fractional_value(std::string_view text, std::span<const QuantityUnit> units) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || !std::isfinite(number)) return std::nullopt;
  const auto size = unit_size(std::string_view(read.ptr, end), units, kSecondSize);
  if (!size) return std::nullopt;
  return *size < kSecondSize ? number / static_cast<double>(kSecondSize / *size)
                             : number * static_cast<double>(*size / kSecondSize);
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
                                 const std::string& expected,
                                 std::span<const QuantityUnit> units = {}, std::int64_t plain = 1,
                                 std::int64_t resolution = 1) {
  return ranged(text, type.min, type.max, expected, [&](std::string_view word) {
    const auto quantity = parse_quantity<std::uint64_t>(word, units, plain, resolution);
    return quantity && quantity->fits ? std::optional(quantity->number) : std::nullopt;
  });
}

Result<std::string> fraction(const ValueType& type, std::string_view text,
                             const std::string& expected, std::span<const QuantityUnit> units) {
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
      return whole_number(type, text, "a whole number " + range);
    case Kind::number:
      return fraction(
          type, text,
          fmt::format("a number from {:.10g} to {:.10g}", type.min_number, type.max_number), {});
    case Kind::seconds:
      return whole_number(
          type, text, fmt::format("a time in whole seconds {}, as 90, 90s, 5m, 2h or 1d", range),
          kUnitsOfSeconds, kSecondSize, kSecondSize);
    case Kind::milliseconds:
      return whole_number(type, text,
                          fmt::format("a time in seconds {}, as 90, 90s, 500ms, 5m, 2h or 1d",
                                      range_in_words(type.min / 1000, type.max / 1000)),
                          kTimeUnits, kSecondSize, kMillisecondSize);
    case Kind::time:
      return fraction(
          type, text,
          fmt::format("a time in seconds from {:.10g} to {:.10g}, as 90, 0.5, 50ms, 5m or 2h",
                      type.min_number, type.max_number),
          kTimeUnits);
    case Kind::size:
      return whole_number(type, text,
                          fmt::format("a size in bytes {}, as 65535, 64KiB or 1GiB", range),
                          kUnitsOfSizes);
  }
  return std::string(text);
}

}  // namespace tubed::options
