#include "text/utf8.h"

#include <algorithm>

namespace tubed {

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

bool is_utf8(std::string_view text) {
  for (;;) {
    const auto beyond_ascii =
        std::ranges::find_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
    text.remove_prefix(static_cast<std::size_t>(beyond_ascii - text.begin()));
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) return text.empty();
    text.remove_prefix(bytes);
  }
}

}  // namespace tubed
