#include "base/utf8.h"

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

}  // namespace tubed
