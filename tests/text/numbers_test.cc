#include "text/numbers.h"

#include <cstdint>

#include <doctest/doctest.h>

namespace tubed::text_test {
namespace {

TEST_CASE("a number is all of a text, in digits alone") {
  CHECK(parse_number<std::uint64_t>("0") == 0);
  CHECK(parse_number<std::uint64_t>("007") == 7);
  CHECK(parse_number<std::uint64_t>("18446744073709551615") == UINT64_MAX);
  for (const char* text : {"", "-0", "+1", " 1", "1 ", "1.0", "0x1", "a", "18446744073709551616"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<std::uint64_t>(text));
  }
  CHECK_FALSE(parse_number<std::uint64_t>(std::string_view("1\0", 2)));
}

TEST_CASE("a number is of its type and base") {
  CHECK(parse_number<std::uint8_t>("255") == 255);
  CHECK_FALSE(parse_number<std::uint8_t>("256"));
  CHECK(parse_number<std::uint8_t>("fF", 16) == 255);
  CHECK_FALSE(parse_number<std::uint8_t>("0x", 16));
  CHECK(parse_number<std::uint32_t>("0777", 8) == 0777);
  CHECK_FALSE(parse_number<std::uint32_t>("8", 8));
}

TEST_CASE("a number is taken off the front") {
  std::string_view text = "12 34x";
  CHECK(take_number<std::uint32_t>(text) == 12);
  CHECK(text == " 34x");
  CHECK_FALSE(take_number<std::uint32_t>(text));
  CHECK(text == " 34x");
  text.remove_prefix(1);
  CHECK(take_number<std::uint32_t>(text) == 34);
  CHECK(text == "x");
}

TEST_CASE("a number that the type cannot hold stays") {
  std::string_view text = "256";
  CHECK_FALSE(take_number<std::uint8_t>(text));
  CHECK(text == "256");
}

TEST_CASE("the number at the front, or 0") {
  CHECK(leading_number<std::uint64_t>("12 held 3") == 12);
  CHECK(leading_number<std::uint64_t>("held 3") == 0);
  CHECK(leading_number<std::uint64_t>("") == 0);
}

}  // namespace
}  // namespace tubed::text_test
