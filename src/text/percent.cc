#include "text/percent.h"

#include <cstdint>
#include <iterator>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed {

std::string percent_encoded(std::string_view text) {
  constexpr unsigned char kDelete = 0x7f;
  std::string word;
  word.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == kDelete || byte == '%') {
      fmt::format_to(std::back_inserter(word), "%{:02X}", byte);
    } else {
      word.push_back(c);
    }
  }
  return word;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  constexpr std::size_t kDigits = 2;
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded.push_back(text[at]);
      continue;
    }
    const std::string_view digits = text.substr(at + 1, kDigits);
    const auto byte = parse_number<std::uint8_t>(digits, 16);
    if (!byte || digits.size() < kDigits) return std::nullopt;
    decoded.push_back(static_cast<char>(*byte));
    at += kDigits;
  }
  return decoded;
}

}  // namespace tubed
