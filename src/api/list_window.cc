#include "api/list_window.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed::api {

std::optional<Problem> ListWindow::read(const Parameters& parameters) {
  if (const std::string* order = find(parameters, "order")) {
    if (*order != "asc" && *order != "desc") return bad_parameter("order", "is not asc or desc");
    descending = *order == "desc";
  }
  const auto read_number = [&](std::string_view name, std::uint64_t& value) {
    const std::string* text = find(parameters, name);
    if (text == nullptr) return true;
    const auto number = parse_number<std::uint64_t>(*text);
    value = number.value_or(0);
    return number.has_value();
  };
  if (!read_number("limit", limit) || limit == 0 || limit > kMostLimit)
    return bad_parameter("limit", fmt::format("is not from 1 to {}", kMostLimit));
  if (!read_number("from", from) || from >= kMostRows)
    return bad_parameter("from", fmt::format("is not below {}", kMostRows));
  limit = std::min(limit, kMostRows - from);
  return std::nullopt;
}

}  // namespace tubed::api
