#include "api/block_json.h"

#include <array>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include "tests/api/api.h"

namespace tubed::api {
namespace {

using namespace protocol;

std::string member_of(std::string_view key, const Value& value) {
  return json_of({[&](BlockSink& block) { block.member(key, value); }});
}

TEST_CASE("members have the types of their values") {
  CHECK(member_of("age", std::uint64_t{5}) == "{\"age\":5}");
  CHECK(member_of("age", std::uint64_t{0}) == "{\"age\":0}");
  CHECK(member_of("age", UINT64_MAX) == "{\"age\":18446744073709551615}");
  CHECK(member_of("rusage-utime", std::chrono::microseconds(20)) == "{\"rusage-utime\":0.000020}");
  CHECK(member_of("draining", true) == "{\"draining\":true}");
  CHECK(member_of("draining", false) == "{\"draining\":false}");
  CHECK(member_of("seconds", Decimal{"0.25"}) == "{\"seconds\":0.25}");
  CHECK(member_of("max-attempts-from", Plain{"wire"}) == "{\"max-attempts-from\":\"wire\"}");
}

TEST_CASE("texts are texts, whatever they look like") {
  for (const std::string_view text :
       {"5", "true", "null", "007", "1e5", "0x1", "", "a: b", "1 2"}) {
    const std::string expected = "{\"x\":\"" + std::string(text) + "\"}";
    CHECK(member_of("x", Text{text}) == expected);
    CHECK(member_of("x", Plain{text}) == expected);
  }
  CHECK(member_of("os", Text{"#1 \"x\\y\"\n"}) == "{\"os\":\"#1 \\\"x\\\\y\\\"\\n\"}");
}

TEST_CASE("members are an object") {
  const Block block{[](BlockSink& sink) {
    sink.member("pid", std::uint64_t{5});
    sink.member("id", Plain{"1234567890123456"});
  }};
  CHECK(json_of(block) == R"({"pid":5,"id":"1234567890123456"})");
  CHECK(json_of({[](BlockSink&) {}}) == "{}");
}

TEST_CASE("items are an array of texts") {
  CHECK(json_of({[](BlockSink& sink) {
          sink.item("a");
          sink.item("5");
          sink.item("\"");
        }}) == R"(["a","5","\""])");
}

TEST_CASE("a table is an object with the next page and the rows") {
  constexpr std::array<std::string_view, 2> kColumns{"id", "state"};
  const auto table = [&](std::uint64_t next, bool has_rows) {
    const std::string json = json_of(
        {[=](BlockSink& sink) {
          sink.begin_table({.names = kColumns, .rest = "tags"});
          if (has_rows) {
            sink.row(std::array<Value, 3>{std::uint64_t{1}, Plain{"5"}, Plain{"idp:a con:b"}});
            sink.row(std::array<Value, 2>{std::uint64_t{2}, Plain{"held"}});
          }
          sink.end_table(next);
        }},
        "jobs");
    CHECK(is_json(json));
    return json;
  };
  CHECK(table(7, false) == R"({"next":7,"jobs":[]})");
  CHECK(table(0, true) ==
        R"({"next":0,"jobs":[{"id":1,"state":"5","tags":"idp:a con:b"},{"id":2,"state":"held"}]})");
}

TEST_CASE("a filtered table says how many items it has looked at") {
  CHECK(json_of({[](BlockSink& sink) {
                  sink.begin_table({});
                  sink.looked_at(1000);
                  sink.end_table(7);
                }},
                "jobs") == R"({"next":7,"looked":1000,"jobs":[]})");
}

TEST_CASE("a block is appended to a text") {
  std::string text = "before";
  JsonBlock block(text, "tubes");
  block.member("total", std::uint64_t{7});
  block.begin_table({});
  block.end_table(3);
  block.finish();
  CHECK(text == R"(before{"total":7,"next":3,"tubes":[]})");
}

}  // namespace
}  // namespace tubed::api
