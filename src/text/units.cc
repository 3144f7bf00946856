#include "text/units.h"

#include <algorithm>

#include <fmt/format.h>

namespace tubed {

std::optional<std::int64_t> unit_size(std::string_view name, std::span<const QuantityUnit> units,
                                      std::int64_t plain) {
  if (name.empty()) return plain;
  const auto unit = std::ranges::find(units, name, &QuantityUnit::name);
  return unit == units.end() ? std::nullopt : std::optional(unit->size);
}

std::string time_in_words(std::uint64_t seconds) {
  const std::uint64_t minutes = seconds / 60;
  const std::uint64_t hours = minutes / 60;
  if (minutes == 0) return fmt::format("{}s", seconds);
  if (hours == 0) return fmt::format("{}m{:02}s", minutes, seconds % 60);
  if (hours < 24) return fmt::format("{}h{:02}m", hours, minutes % 60);
  return fmt::format("{}d{:02}h", hours / 24, hours % 24);
}

std::string quantity_text(std::int64_t number, std::span<const QuantityUnit> units) {
  const auto unit = std::ranges::find_if(
      units, [number](const QuantityUnit& one) { return number % one.size == 0; });
  if (number == 0 || unit == units.end()) return fmt::to_string(number);
  return fmt::format("{}{}", number / unit->size, unit->name);
}

}  // namespace tubed
