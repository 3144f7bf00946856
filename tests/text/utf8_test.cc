#include "text/utf8.h"

#include <array>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

namespace tubed::text_test {
namespace {

// The encoding of a scalar value. [RFC 3629, section 3]
std::string encoded(std::uint32_t value) {
  const auto byte = [](std::uint32_t bits) { return static_cast<char>(bits); };
  const auto tail = [&](int shift) { return byte(0x80 | (value >> shift & 0x3f)); };
  if (value < 0x80) return {byte(value)};
  if (value < 0x800) return {byte(0xc0 | value >> 6), tail(0)};
  if (value < 0x10000) return {byte(0xe0 | value >> 12), tail(6), tail(0)};
  return {byte(0xf0 | value >> 18), tail(12), tail(6), tail(0)};
}

bool is_scalar(std::uint32_t value) {
  return value < 0xd800 || (value > 0xdfff && value < 0x110000);
}

TEST_CASE("each scalar value is a character, and no other value is") {
  for (std::uint32_t value = 0; value < 0x120000; ++value) {
    const std::string text = encoded(value);
    const std::size_t bytes = character_bytes(text);
    if (bytes != (is_scalar(value) ? text.size() : 0)) {
      CAPTURE(value);
      CHECK(bytes == (is_scalar(value) ? text.size() : 0));
    }
  }
}

TEST_CASE("a character that is cut, overlong or without its first byte is refused") {
  for (const std::string text : {"", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc0\x80", "\xc1\xbf",
                                 "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\x80", "\xff", "\xc3("}) {
    CAPTURE(text);
    CHECK(character_bytes(text) == 0);
  }
}

TEST_CASE("UTF-8 consists of whole characters alone") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("text"));
  CHECK(is_utf8("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"));
  CHECK(is_utf8(std::string_view("\0", 1)));
  CHECK_FALSE(is_utf8("text\xc3"));
  CHECK_FALSE(is_utf8("\xa4 text"));
  CHECK_FALSE(is_utf8("\xc3\xa4\xe2\x82"));
}

}  // namespace
}  // namespace tubed::text_test
