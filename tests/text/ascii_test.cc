#include "text/ascii.h"

#include <doctest/doctest.h>

namespace tubed::text_test {
namespace {

TEST_CASE("only the letters of ASCII have a case") {
  CHECK(ascii_lower('A') == 'a');
  CHECK(ascii_lower('Z') == 'z');
  for (const char c : {'a', 'z', '@', '[', '0', '\0', '\xc4'}) CHECK(ascii_lower(c) == c);
  CHECK(ascii_lower("Ready-9") == "ready-9");
}

TEST_CASE("texts that differ in case alone are equal") {
  CHECK(equal_but_for_case("", ""));
  CHECK(equal_but_for_case("Bearer ", "bEARER "));
  CHECK_FALSE(equal_but_for_case("Bearer", "Bearer "));
  CHECK_FALSE(equal_but_for_case("a@", "a`"));
  CHECK_FALSE(equal_but_for_case("\xc4", "\xe4"));
}

}  // namespace
}  // namespace tubed::text_test
