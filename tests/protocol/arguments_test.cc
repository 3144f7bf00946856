#include "protocol/arguments.h"

#include <string>

#include <doctest/doctest.h>

using namespace tubed;
using namespace tubed::protocol;

namespace {

struct Everything {
  std::uint64_t id;
  std::uint32_t priority;
  Seconds delay;
  TubeName tube;
  static constexpr auto fields =
      schema(field<&Everything::id>("id"), field<&Everything::priority>("pri"),
             field<&Everything::delay>("delay"), field<&Everything::tube>("tube"));
};

struct Spaced {
  SpacedTubeName tube;
  Seconds delay;
  static constexpr auto fields =
      schema(field<&Spaced::tube>("tube"), field<&Spaced::delay>("delay"));
};

struct Nothing {
  static constexpr auto fields = schema();
};

bool parses(std::string_view text) {
  Everything everything{};
  return parse_arguments(text, everything);
}

}  // namespace

TEST_CASE("fields are read in order into their members") {
  Everything everything{};
  REQUIRE(parse_arguments("7 8 9 t", everything));
  CHECK(everything.id == 7);
  CHECK(everything.priority == 8);
  CHECK(everything.delay.count == 9);
  CHECK(everything.tube.text == "t");
}

TEST_CASE("numbers are accepted up to the maximum of their type") {
  CHECK(parses("18446744073709551615 4294967295 4294967295 t"));
  CHECK_FALSE(parses("18446744073709551616 1 1 t"));
  CHECK_FALSE(parses("1 4294967296 1 t"));
  CHECK_FALSE(parses("1 1 4294967296 t"));
  CHECK_FALSE(parses("99999999999999999999999999 1 1 t"));
  CHECK(parses("000000000000000000000000001 1 1 t"));
}

TEST_CASE("a number is digits and may be preceded by spaces") {
  CHECK(parses("   1    1     1 t"));
  for (const char* bad : {"-1 1 1 t", "+1 1 1 t", "1x 1 1 t", "x1 1 1 t", "0x1 1 1 t", "1. 1 1 t",
                          "\t1 1 1 t", "1\t1 1 t", "1 1 1\tt", " "}) {
    CAPTURE(bad);
    CHECK_FALSE(parses(bad));
  }
}

TEST_CASE("a line has as many fields as the schema") {
  for (const char* bad : {"", "1", "1 ", "1 1 1", "1 1 1 ", "1 1 1 t ", "1 1 1 t u", "1 1 1  t"}) {
    CAPTURE(bad);
    CHECK_FALSE(parses(bad));
  }
  Nothing nothing;
  CHECK(parse_arguments("", nothing));
  CHECK_FALSE(parse_arguments(" ", nothing));
  CHECK_FALSE(parse_arguments("x", nothing));
}

TEST_CASE("a tube name before a number may have spaces before it") {
  Spaced spaced{};
  CHECK(parse_arguments("   t 5", spaced));
  CHECK(spaced.tube.text == "t");
  CHECK_FALSE(parse_arguments("   -t 5", spaced));
  CHECK_FALSE(parse_arguments("t", spaced));
  CHECK_FALSE(parse_arguments("  5", spaced));
}

TEST_CASE("tube names are 1 to 200 allowed characters and do not begin with a hyphen") {
  std::string allowed;
  for (int c = 0; c < 256; ++c) {
    const std::string name = "a" + std::string(1, static_cast<char>(c));
    if (is_tube_name(name)) allowed += static_cast<char>(c);
  }
  CHECK(allowed == "$()+-./0123456789;ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz");
  CHECK(is_tube_name(std::string(200, 'a')));
  CHECK_FALSE(is_tube_name(std::string(201, 'a')));
  CHECK_FALSE(is_tube_name(""));
  CHECK_FALSE(is_tube_name("-a"));
  CHECK(is_tube_name("+-"));
}

TEST_CASE("the body size of a malformed put is read where it can be") {
  BodySize size;
  for (const char* text :
       {"x y z 7", "1 2 3 7 junk", "-1 0 0 7", "  1   2   3   7", "99999999999 1 1 7"}) {
    CAPTURE(text);
    size.bytes = 0;
    CHECK(salvage_body_size(text, 3, size));
    CHECK(size.bytes == 7);
  }
  for (const char* text : {"", "1 2 3", "1 2 3 ", "1 2 3 x7", "1 2 3 -7", "1 2 3 7x", "1 2 3 10b",
                           "1 2 3 4294967296"}) {
    CAPTURE(text);
    CHECK_FALSE(salvage_body_size(text, 3, size));
  }
}
