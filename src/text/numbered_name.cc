#include "text/numbered_name.h"

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed {

std::string numbered_name(std::string_view prefix, std::uint64_t number) {
  return fmt::format("{}{:010}", prefix, number);
}

std::optional<std::uint64_t> number_of_name(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto number = parse_number<std::uint64_t>(name.substr(prefix.size()));
  // Each number has exactly one name.
  if (!number || *number == 0 || numbered_name(prefix, *number) != name) return std::nullopt;
  return number;
}

}  // namespace tubed
