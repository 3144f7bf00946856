#include "text/quoting.h"

#include <doctest/doctest.h>

namespace tubed {

TEST_CASE("a quoted text has no other quote, and no control character") {
  CHECK(quoted("", kByteEscape) == "\"\"");
  CHECK(quoted("a \"b\" \\", kByteEscape) == R"("a \"b\" \\")");
  CHECK(quoted("\n\x1f\x7f", kByteEscape) == R"("\x0a\x1f\x7f")");
  CHECK(quoted("\n\x7f", kUnicodeEscape) == R"("\u000a\u007f")");
  CHECK(quoted(std::string_view("\0", 1), kByteEscape) == R"("\x00")");
  CHECK(quoted("\xc3\xa4~", kUnicodeEscape) == "\"\xc3\xa4~\"");
  CHECK(quoted("\xc3\xa4~", kByteEscape, true) == R"("\xc3\xa4~")");
}

}  // namespace tubed
