#include "api/target.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed::api {

namespace {

// `plus_is_space`: in a query. False: an escape is malformed, or a byte is zero.
bool unescape(std::string_view text, bool plus_is_space, std::string& out) {
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    char byte = text[at];
    if (byte == '%') {
      const std::string_view digits = text.substr(at + 1, 2);
      const auto value = parse_number<std::uint8_t>(digits, 16);
      if (!value || digits.size() < 2) return false;
      byte = static_cast<char>(*value);
      at += 2;
    } else if (byte == '+' && plus_is_space) {
      byte = ' ';
    }
    if (byte == '\0') return false;
    out.push_back(byte);
  }
  return true;
}

// Calls visit(part) for each part between separators; false: visit() has returned false.
template <class Visit>
bool for_each_part(std::string_view text, char separator, const Visit& visit) {
  for (;;) {
    const std::size_t end = text.find(separator);
    if (!visit(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

const std::string* find(const Parameters& parameters, std::string_view name) {
  const auto found = std::ranges::find(parameters, name,
                                       [](const auto& one) { return std::string_view(one.first); });
  return found == parameters.end() ? nullptr : &found->second;
}

std::optional<Target> parse_target(std::string_view target) {
  if (target.size() > kMaxTargetBytes || !target.starts_with('/')) return std::nullopt;
  target = target.substr(0, target.find('#'));
  const std::size_t mark = target.find('?');
  Target result;
  const bool path_is_right = for_each_part(
      target.substr(1, mark == std::string_view::npos ? mark : mark - 1), '/',
      [&](std::string_view part) { return unescape(part, false, result.segments.emplace_back()); });
  if (!path_is_right) return std::nullopt;
  if (mark == std::string_view::npos || mark + 1 == target.size()) return result;
  const bool query_is_right =
      for_each_part(target.substr(mark + 1), '&', [&](std::string_view part) {
        if (part.empty()) return true;
        const std::size_t equals = part.find('=');
        auto& [name, value] = result.query.emplace_back();
        return unescape(part.substr(0, equals), true, name) &&
               (equals == std::string_view::npos || unescape(part.substr(equals + 1), true, value));
      });
  return query_is_right ? std::optional(std::move(result)) : std::nullopt;
}

void append_segment(std::string_view text, std::string& path) {
  constexpr std::string_view kPlain = "-._~$&+,;=:@()!*'";
  for (const char byte : text) {
    const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                          (byte >= '0' && byte <= '9') ||
                          kPlain.find(byte) != std::string_view::npos;
    if (is_plain) {
      path.push_back(byte);
    } else {
      fmt::format_to(std::back_inserter(path), "%{:02X}", static_cast<unsigned char>(byte));
    }
  }
}

}  // namespace tubed::api
