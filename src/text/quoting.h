// Texts in double quotes, on one line.
#pragma once

#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tubed {

// As JSON and TOML write a byte, and as C does.
inline constexpr std::string_view kUnicodeEscape = "\\u{:04x}";
inline constexpr std::string_view kByteEscape = "\\x{:02x}";

// Returns `text` in double quotes, with a backslash before each quote and backslash. Control
// characters of ASCII are written as `escape`; so is each byte beyond ASCII, if `ascii_only`.
// O(text).
inline std::string quoted(std::string_view text, std::string_view escape, bool ascii_only = false) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (ascii_only && byte > 0x7f)) {
      fmt::format_to(std::back_inserter(result), fmt::runtime(escape), byte);
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace tubed
