// Target: the path and the query of a request, taken apart. [RFC 3986, sections 3.3 and 3.4]
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tubed::api {

// Names with values; of several with one name the first counts.
using Parameters = std::vector<std::pair<std::string, std::string>>;
// Null: no parameter has the name. O(parameters).
const std::string* find(const Parameters& parameters, std::string_view name);

struct Target {
  // Between the slashes, unescaped: a segment may contain a slash that was escaped.
  std::vector<std::string> segments;
  Parameters query;
};

// Reads "/api/v1/tubes/mail?limit=10", escaped as on the request line. Nothing: it does not begin
// with a slash, an escape is not %XX, it has a zero byte, or it is longer than kMaxTargetBytes.
// O(target).
inline constexpr std::size_t kMaxTargetBytes = 8192;
std::optional<Target> parse_target(std::string_view target);

// Appends the text with an escape for each byte that a segment of a path must not have. O(text).
void append_segment(std::string_view text, std::string& path);

}  // namespace tubed::api
