#include <random>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "tubectl/json.h"

namespace tubed::tubectl {
namespace {

std::string line_with(std::string_view body) {
  Json object;
  set_body(object, body);
  return to_line(object);
}

}  // namespace

TEST_CASE("base64 as RFC 4648 has it") {
  struct Vector {
    const char* bytes;
    const char* text;
  };
  for (const Vector& vector :
       {Vector{"", ""}, Vector{"f", "Zg=="}, Vector{"fo", "Zm8="}, Vector{"foo", "Zm9v"},
        Vector{"foob", "Zm9vYg=="}, Vector{"fooba", "Zm9vYmE="}, Vector{"foobar", "Zm9vYmFy"},
        Vector{"\xfb\xff\xbf", "+/+/"}}) {
    CAPTURE(vector.bytes);
    CHECK(to_base64(vector.bytes) == vector.text);
    CHECK(from_base64(vector.text).value() == vector.bytes);
  }
}

TEST_CASE("base64 that is not whole is damaged") {
  for (const char* const text : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zg==Zg==",
                                 "Zm9v\n", "Zm9-", "Zm9_", "Z g=", "Zm=v", "Zm9vYg=!"}) {
    CAPTURE(text);
    CHECK_FALSE(from_base64(text));
  }
}

TEST_CASE("UTF-8 is text") {
  for (const char* const body : {"", "plain", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
                                 "\xec\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
                                 "\xf0\x90\x80\x80", "\xf3\xbf\xbf\xbf", "\xf4\x8f\xbf\xbf"}) {
    CAPTURE(body);
    CHECK(line_with(body).starts_with("{\"body\":\""));
    CHECK(body_of(Json::parse(line_with(body))).value() == body);
  }
}

TEST_CASE("what is no UTF-8 is base64: each kind of it") {
  for (const char* const body : {"\x80",
                                 "\xbf",
                                 "\xc0\x80",
                                 "\xc1\xbf",  // no beginning; too long for it
                                 "\xe0\x80\x80",
                                 "\xe0\x9f\xbf",
                                 "\xf0\x80\x80\x80",  // too long for it
                                 "\xf0\x8f\xbf\xbf",
                                 "\xed\xa0\x80",
                                 "\xed\xbf\xbf",  // surrogates
                                 "\xf4\x90\x80\x80",
                                 "\xf5\x80\x80\x80",
                                 "\xff",  // beyond U+10FFFF
                                 "\xc2",
                                 "\xe1\x80",
                                 "\xf1\x80\x80",  // cut off at the end
                                 "\xc2x",
                                 "\xe1\x80x",
                                 "\xf1\x80\x80x",
                                 "\xe1x\x80",  // cut off by another
                                 "\xc2\xc2\x80"}) {
    CAPTURE(body);
    CHECK(line_with(body) == "{\"body_base64\":\"" + to_base64(body) + "\"}");
    CHECK(body_of(Json::parse(line_with(body))).value() == body);
  }
}

TEST_CASE("control characters stand in one line") {
  const std::string body("a\0b\n\r\t\x1f\"\\", 9);
  CHECK(line_with(body) == R"({"body":"a\u0000b\n\r\t\u001f\"\\"})");
  CHECK(body_of(Json::parse(line_with(body))).value() == body);
}

TEST_CASE("random bytes come back") {
  std::mt19937 random(4648);
  for (std::size_t size = 0; size < 300; ++size) {
    std::string body(size, ' ');
    for (char& byte : body) byte = static_cast<char>(random());
    CAPTURE(size);
    REQUIRE(from_base64(to_base64(body)).value() == body);
    REQUIRE(body_of(Json::parse(line_with(body))).value() == body);
  }
}

TEST_CASE("an object has one body, and it is text") {
  CHECK_FALSE(body_of(Json::parse("{}")));
  CHECK_FALSE(body_of(Json::parse(R"({"body":"","body_base64":""})")));
  CHECK_FALSE(body_of(Json::parse(R"({"body":null})")));
  CHECK_FALSE(body_of(Json::parse(R"({"body_base64":7})")));
  CHECK_FALSE(body_of(Json::parse(R"({"body_base64":"Zg="})")));
  CHECK(body_of(Json::parse(R"({"body_base64":""})")).value().empty());
}

TEST_CASE("a line has no control character, of either kind, and reads back") {
  const std::string body = "\x01\x7f\xc2\x80\xc2\x9f\xc2\xa0\xc3\xa4";
  const std::string line = line_with(body);
  CHECK(line == "{\"body\":\"\\u0001\\u007f\\u0080\\u009f\xc2\xa0\xc3\xa4\"}");
  CHECK(body_of(Json::parse(line)).value() == body);
}

}  // namespace tubed::tubectl
