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

std::string quantity_text(std::int64_t number, std::span<const QuantityUnit> units) {
  const auto unit = std::ranges::find_if(
      units, [number](const QuantityUnit& one) { return number % one.size == 0; });
  if (number == 0 || unit == units.end()) return fmt::to_string(number);
  return fmt::format("{}{}", number / unit->size, unit->name);
}

}  // namespace tubed
