#include "api/target.h"

#include <string>

#include <doctest/doctest.h>

namespace tubed::api {
namespace {

using Segments = std::vector<std::string>;

Segments segments_of(std::string_view target) {
  const auto parsed = parse_target(target);
  REQUIRE(parsed);
  return parsed->segments;
}

Parameters query_of(std::string_view query) {
  const auto parsed = parse_target(std::string("/x?").append(query));
  REQUIRE(parsed);
  return parsed->query;
}

TEST_CASE("a path is taken apart before it is unescaped") {
  CHECK(segments_of("/api/v1/tubes/mail") == Segments{"api", "v1", "tubes", "mail"});
  CHECK(segments_of("/tubes/a%2Fb/jobs") == Segments{"tubes", "a/b", "jobs"});
  CHECK(segments_of("/tubes/a%2fb%3F%25") == Segments{"tubes", "a/b?%"});
  CHECK(segments_of("/a+b%20c") == Segments{"a+b c"});  // a plus is a space in a query alone
  CHECK(segments_of("/") == Segments{""});
  CHECK(segments_of("//a/") == Segments{"", "a", ""});
  CHECK(segments_of("/a?b/c") == Segments{"a"});
  CHECK(segments_of("/a#b/c?d") == Segments{"a"});
  CHECK(segments_of("/%0D%0a%FF") == Segments{"\r\n\xff"});
}

TEST_CASE("a query has names with values") {
  CHECK(query_of("") == Parameters{});
  CHECK(query_of("a=1&b=2") == Parameters{{"a", "1"}, {"b", "2"}});
  CHECK(query_of("a") == Parameters{{"a", ""}});
  CHECK(query_of("a=") == Parameters{{"a", ""}});
  CHECK(query_of("=") == Parameters{{"", ""}});
  CHECK(query_of("&&a=1&") == Parameters{{"a", "1"}});
  CHECK(query_of("a=b=c") == Parameters{{"a", "b=c"}});
  CHECK(query_of("a=1+2%2B3%20%26") == Parameters{{"a", "1 2+3 &"}});
  CHECK(query_of("%61%3D=?") == Parameters{{"a=", "?"}});
  CHECK(query_of("a=1#b=2") == Parameters{{"a", "1"}});
  CHECK(query_of("a=1&a=2") == Parameters{{"a", "1"}, {"a", "2"}});
  CHECK(*find(query_of("a=1&a=2"), "a") == "1");
  CHECK(find(query_of("a=1"), "b") == nullptr);
}

TEST_CASE("a target that is malformed, has a zero byte or is too long is refused") {
  for (const std::string_view target :
       {"", "api", "?a", "*", "http://host/", "/%", "/%4", "/%4x", "/%x4", "/%+1", "/%-1", "/a%",
        "/%00", "/a?%00", "/a?b=%00", "/a?%", "/a?b=%4", "/a?%zz=1"}) {
    CAPTURE(target);
    CHECK(!parse_target(target));
  }
  CHECK(!parse_target(std::string_view("/a\0b", 4)));
  const std::string longest = "/" + std::string(kMaxTargetBytes - 1, 'a');
  CHECK(segments_of(longest) == Segments{longest.substr(1)});
  CHECK(!parse_target(longest + "a"));
}

TEST_CASE("every text without a zero byte survives a segment of a path") {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  for (const std::string& text :
       {std::string("mail"), std::string("a/b"), std::string("a+b c%"), all}) {
    std::string path = "/tubes/";
    append_segment(text, path);
    path += "/jobs?x=1";
    CHECK(segments_of(path) == Segments{"tubes", text, "jobs"});
  }
  std::string path;
  append_segment("a/b c?#%\x7f\xc3\xa9", path);
  CHECK(path == "a%2Fb%20c%3F%23%25%7F%C3%A9");
}

}  // namespace
}  // namespace tubed::api
