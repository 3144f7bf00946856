#include "tubectl/json.h"

#include <random>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "tubectl/watch.h"

namespace tubed::tubectl {
namespace {

std::string line_with(std::string_view body) {
  Json object;
  set_body(object, body);
  return to_line(object);
}

}  // namespace

TEST_CASE("base64 follows RFC 4648") {
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

TEST_CASE("incomplete or malformed base64 is refused") {
  for (const char* const text : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zg==Zg==",
                                 "Zm9v\n", "Zm9-", "Zm9_", "Z g=", "Zm=v", "Zm9vYg=!"}) {
    CAPTURE(text);
    CHECK_FALSE(from_base64(text));
  }
}

TEST_CASE("a body in UTF-8 is written as text") {
  for (const char* const body : {"", "plain", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
                                 "\xec\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
                                 "\xf0\x90\x80\x80", "\xf3\xbf\xbf\xbf", "\xf4\x8f\xbf\xbf"}) {
    CAPTURE(body);
    CHECK(line_with(body).starts_with("{\"body\":\""));
    CHECK(body_of(*Json::parse(line_with(body))).value() == body);
  }
}

TEST_CASE("a body that is not UTF-8 is written as base64") {
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
    CHECK(body_of(*Json::parse(line_with(body))).value() == body);
  }
}

TEST_CASE("control characters are escaped within a line") {
  const std::string body("a\0b\n\r\t\x1f\"\\", 9);
  CHECK(line_with(body) == R"({"body":"a\u0000b\n\r\t\u001f\"\\"})");
  CHECK(body_of(*Json::parse(line_with(body))).value() == body);
}

TEST_CASE("random bytes are read back unchanged") {
  std::mt19937 random(4648);
  for (std::size_t size = 0; size < 300; ++size) {
    std::string body(size, ' ');
    for (char& byte : body) byte = static_cast<char>(random());
    CAPTURE(size);
    REQUIRE(from_base64(to_base64(body)).value() == body);
    REQUIRE(body_of(*Json::parse(line_with(body))).value() == body);
  }
}

TEST_CASE("an object has exactly one body, which is text") {
  CHECK_FALSE(body_of(*Json::parse("{}")));
  CHECK_FALSE(body_of(*Json::parse(R"({"body":"","body_base64":""})")));
  CHECK_FALSE(body_of(*Json::parse(R"({"body":null})")));
  CHECK_FALSE(body_of(*Json::parse(R"({"body_base64":7})")));
  CHECK_FALSE(body_of(*Json::parse(R"({"body_base64":"Zg="})")));
  CHECK(body_of(*Json::parse(R"({"body_base64":""})")).value().empty());
}

TEST_CASE("a line has no control characters of either kind, and is read back") {
  const std::string body = "\x01\x7f\xc2\x80\xc2\x9f\xc2\xa0\xc3\xa4";
  const std::string line = line_with(body);
  CHECK(line == "{\"body\":\"\\u0001\\u007f\\u0080\\u009f\xc2\xa0\xc3\xa4\"}");
  CHECK(body_of(*Json::parse(line)).value() == body);
}

TEST_CASE("numbers and truth values are no text, and quoted values are") {
  const client::StatsBlock stats(
      "---\n"
      "cmd-put: 18446744073709551615\n"
      "rusage-utime: 0.25\n"
      "draining: false\n"
      "readonly: true\n"
      "version: \"1.12\"\n"
      "id: 1234567890123456\n"
      "hostname: 10\n"
      "name: 7\n"
      "dead: 5\n"
      "expired: true\n"
      "pid: \n"
      "odd: 1e5\n"
      "of-another-server: inf\n"
      "of-another-server-too: NaN\n"
      "group: inf\n"
      "after-group: NaN\n"
      "concurrency-key: infinity\n"
      "more: 99999999999999999999\n");
  CHECK(to_line(stats_json(stats)) ==
        R"({"cmd-put":18446744073709551615,"rusage-utime":0.25,"draining":false,"readonly":true,)"
        R"("version":"1.12","id":"1234567890123456","hostname":"10","name":"7",)"
        R"("dead":"5","expired":"true","pid":"",)"
        R"("odd":"1e5","of-another-server":"inf","of-another-server-too":"NaN",)"
        R"("group":"inf","after-group":"NaN","concurrency-key":"infinity",)"
        R"("more":1e+20})");
}

TEST_CASE("a job in JSON has the keys of the server, and its tags") {
  const client::StatsBlock job(
      "id: 5\ntube: 12\nstate: ready\npri: 7\ntime-left: 3\nkicks: 2\nidempotency-key: 4\n"
      "idempotency-ttl: 60\nof-a-later-server: true\n");
  CHECK(
      to_line(job_json(job)) ==
      R"({"id":5,"tube":"12","state":"ready","pri":7,"time-left":3,"kicks":2,)"
      R"("idempotency-key":"4","idempotency-ttl":60,"of-a-later-server":true,"tags":"idp:4:60"})");
  CHECK(to_line(job_json(client::StatsBlock("id: 5\n"))) == R"({"id":5})");
}

TEST_CASE("a job as text has its lines, even those that the server does not report") {
  CHECK(job_lines(client::StatsBlock("id: 5\ntube: 12\nstate: ready\npri: 7\ntime-left: 3\n")) ==
        "id         5\ntube       12\nstate      ready\npriority   7\nage        0\n"
        "delay      0\nttr        0\ntime_left  3\nreserves   0\ntimeouts   0\n"
        "releases   0\nburies     0\nkicks      0\n");
}

TEST_CASE("a watched object begins with its time") {
  CHECK(with_time("{\"id\":1}\n{}\n", "T") == "{\"time\":\"T\",\"id\":1}\n{\"time\":\"T\"}\n");
  CHECK(with_time("", "T") == "");
  CHECK(with_time("no object", "T") == "no object\n");
}

TEST_CASE("the values of aligned lines start in the same column") {
  CHECK(aligned_lines({{"id", 5}, {"time_left", 10}, {"tube", "mail"}}) ==
        "id         5\n"
        "time_left  10\n"
        "tube       mail\n");
  CHECK(aligned_lines(Json::object()) == "");
}

TEST_CASE("a line keeps its members; nested values are checked and dropped") {
  const auto shown = [](std::string_view line) {
    const auto object = Json::parse(line);
    return object ? to_line(*object) : "none";
  };
  CHECK(shown(R"({"a":{"b":{"a":2},"c":[3]},"d":[[4],{"a":5}],"e":6,"e":-7})") ==
        R"({"a":{},"d":{},"e":-7.0})");
  CHECK(shown("{}") == "{}");
  const std::string deep = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  CHECK(shown(deep) == R"({"a":{}})");
  for (const char* const line :
       {"[1]", "7", "null", "", "{\"a\":[}", "{\"a\":{\"b\":[1,]}}", "{} {}"}) {
    CAPTURE(line);
    CHECK(shown(line) == "none");
  }
}

TEST_CASE("a document is kept with its nested values") {
  const auto document =
      Json::parse_document(R"( {"a":[1,{"b":[true,null,"x"]},[],1.5,-2],"c":{},"a2":false} )");
  REQUIRE(document);
  CHECK(to_line(*document) == R"({"a":[1,{"b":[true,null,"x"]},[],1.5,-2.0],"c":{},"a2":false})");
  const auto* const elements = document->find("a")->elements();
  REQUIRE(elements != nullptr);
  REQUIRE(elements->size() == 5);
  CHECK((*elements)[0].number() == 1U);
  CHECK((*elements)[1].is_object());
  CHECK((*elements)[1].find("b")->elements()->front().truth() == true);
  CHECK((*elements)[1].elements() == nullptr);
  CHECK(document->find("a2")->truth() == false);
  CHECK_FALSE(document->find("c")->truth());
  CHECK_FALSE((*elements)[0].is_object());
  CHECK(Json::parse_document("7")->number() == 7U);
  CHECK(*Json::parse_document("\"x\"")->text() == "x");
  CHECK(to_line(*Json::parse_document(R"({"a":1,"a":[2]})")) == R"({"a":[2]})");
}

TEST_CASE("a document that is malformed or too deep is refused") {
  for (const char* const text :
       {"", " ", "{", "[1", "[1,]", "{\"a\"}", "1 2", "[]]", "nul", "\x80"}) {
    CAPTURE(text);
    CHECK_FALSE(Json::parse_document(text));
  }
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
    const auto nested = [&, begin = open, end = close](std::size_t depth) {
      std::string text;
      for (std::size_t level = 0; level < depth; ++level) text += begin;
      text += "1";
      for (std::size_t level = 0; level < depth; ++level) text += end;
      return text;
    };
    CHECK(Json::parse_document(nested(Json::kMaxDepth)));
    CHECK_FALSE(Json::parse_document(nested(Json::kMaxDepth + 1)));
    CHECK_FALSE(Json::parse_document(nested(100'000)));
  }
}

}  // namespace tubed::tubectl
