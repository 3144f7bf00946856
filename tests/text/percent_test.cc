#include "text/percent.h"

#include <string>

#include <doctest/doctest.h>

namespace tubed {
namespace {

TEST_CASE("spaces, control characters and percent signs are encoded") {
  CHECK(percent_encoded("").empty());
  CHECK(percent_encoded("plain+:/?text") == "plain+:/?text");
  CHECK(percent_encoded(" a%\r\n\x7f") == "%20a%25%0D%0A%7F");
  CHECK(percent_encoded(std::string("\0", 1)) == "%00");
  CHECK(percent_encoded("\xc3\xa9") == "\xc3\xa9");
}

TEST_CASE("an encoded text decodes to itself, for each byte") {
  for (int byte = 0; byte < 256; ++byte) {
    CAPTURE(byte);
    const std::string text = {'a', static_cast<char>(byte), 'b'};
    const std::string word = percent_encoded(text);
    CHECK(percent_decoded(word) == text);
    CHECK(word.find(' ') == std::string::npos);
  }
  CHECK(percent_decoded("%41%6a%4a+") == "AjJ+");
}

TEST_CASE("two hexadecimal digits follow a percent sign") {
  for (const char* text : {"%", "a%", "%4", "%4g", "%g4", "% 4", "%+4", "%-1", "%%", "%0x1"}) {
    CAPTURE(text);
    CHECK(!percent_decoded(text));
  }
}

}  // namespace
}  // namespace tubed
