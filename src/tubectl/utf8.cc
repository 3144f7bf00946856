#include "tubectl/utf8.h"

#include <iterator>

#include <fmt/format.h>

namespace tubed::tubectl {
namespace {

// Of a whole character. Those of the second kind (U+0080 to U+009F) are control characters as well.
bool is_control_character(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::size_t character_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text.front());
  std::size_t length = 1;
  unsigned least = 0x80;
  unsigned most = 0xbf;
  if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    if (first == 0xf0) least = 0x90;
    if (first == 0xf4) most = 0x8f;
  } else if (first >= 0xe0 && first < 0xf0) {
    length = 3;
    if (first == 0xe0) least = 0xa0;
    if (first == 0xed) most = 0x9f;
  } else if (first >= 0xc2 && first < 0xe0) {
    length = 2;
  } else if (first >= 0x80) {
    return 0;
  }
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < (i == 1 ? least : 0x80) || byte > (i == 1 ? most : 0xbf)) return 0;
  }
  return length;
}

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
    text.remove_prefix(character.size());
    if (character == "\n" || character == "\t" || (bytes > 0 && !is_control_character(character))) {
      result += character;
    } else if (character == "\r") {
      result += "\\r";
    } else {
      for (const char byte : character) {
        fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
  }
  return result;
}

}  // namespace tubed::tubectl
