#include "tubectl/terminal.h"

#include <cstdint>
#include <string_view>

#include <doctest/doctest.h>

namespace tubed::tubectl {

TEST_CASE("a character is complete or not counted") {
  CHECK(character_bytes("") == 0);
  CHECK(character_bytes("ab") == 1);
  CHECK(character_bytes("\xc3\xa4x") == 2);
  CHECK(character_bytes("\xe2\x82\xac") == 3);
  CHECK(character_bytes("\xf0\x9f\x98\x80") == 4);
  for (const std::string_view none :
       {"\x80", "\xff", "\xc3", "\xc1\x81", "\xe2\x82", "\xe0\x80\x80", "\xed\xa0\x80",
        "\xf0\x80\x80\x80", "\xf4\x90\x80\x80"}) {
    CHECK(character_bytes(none) == 0);
  }
}

TEST_CASE("text for a terminal contains no control sequences") {
  CHECK(escaped("a\tb\n\xc3\xa4\xe2\x82\xac") == "a\tb\n\xc3\xa4\xe2\x82\xac");
  CHECK(escaped("\x1b[31m\a\r\n") == "\\x1b[31m\\x07\\r\n");
  CHECK(escaped(std::string_view("\0\x7f", 2)) == "\\x00\\x7f");
  CHECK(escaped("\xc2\x9b"
                "1m\xc2\xa0") == "\\xc2\\x9b1m\xc2\xa0");
  CHECK(escaped("\x9b\xff\xe2\x82") == "\\x9b\\xff\\xe2\\x82");
}

TEST_CASE("a part of a line stays within its line") {
  CHECK(one_line("a\tb\n\x1b[0m\r\xc3\xa4") == "a\\tb\\n\\x1b[0m\\r\xc3\xa4");
}

TEST_CASE("the progress has a count and a rate, and a remaining time where the total is known") {
  CHECK(progress_text("putting", 300, 0, {}, 2) == "putting 300, 150/s");
  CHECK(progress_text("putting", 300, 0, 0.25, 30) ==
        "putting 300 [=====               ] 25 %, 10/s, 1m30s left");
  CHECK(progress_text("clearing", 500, 2000, {}, 5) ==
        "clearing 500 of 2000 [=====               ] 25 %, 100/s, 15s left");
  CHECK(progress_text("clearing", 0, 2000, {}, 5) ==
        "clearing 0 of 2000 [                    ] 0 %, 0/s");
  // Other clients may have put more jobs meanwhile.
  CHECK(progress_text("clearing", 2100, 2000, {}, 5) ==
        "clearing 2100 of 2000 [====================] 100 %, 420/s, 0s left");
  CHECK(progress_text("clearing", 1, UINT64_MAX, {}, 1e6).ends_with(" left"));
}

}  // namespace tubed::tubectl
