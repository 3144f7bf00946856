#include "tools/docs/yaml.h"

#include <doctest/doctest.h>

namespace tubed::docs {
namespace {

using json::Json;

TEST_CASE("maps, lists and scalars as YAML") {
  const Json value{{"a", 1},
                   {"b", {{"c", true}, {"d", Json::object()}}},
                   {"e", Json::array({"x", 2, {{"f", "g"}, {"h", Json::array({"i"})}}})},
                   {"j", Json::array({})}};
  CHECK(to_yaml(value) ==
        "a: 1\nb:\n  c: true\n  d: {}\ne:\n  - x\n  - 2\n  - f: g\n    h:\n      - i\nj: []\n");
}

TEST_CASE("a text that YAML would take for something else is in quotes") {
  const auto yaml = [](std::string_view text) { return to_yaml({{"a", text}}); };
  CHECK(yaml("Plain words, (with) dots.") == "a: Plain words, (with) dots.\n");
  for (const std::string_view text :
       {"",     "true", "No", "null", "Y",   "200", "1.0", "-",   "- a",  "a: b",
        "a #b", " a",   "a ", "{a}",  "[a]", "*a",  "&a",  "!a",  "a\nb", "\"a\"",
        "'a'",  "a\\b", "~",  "%a",   "@a",  "`a`", "a:b", "a/b", "a<b"}) {
    CAPTURE(text);
    CHECK(yaml(text) == "a: " + to_line(Json(text)) + "\n");
  }
  CHECK(to_yaml({{"200", 1}}) == "\"200\": 1\n");
  CHECK(to_yaml({{"on", 1}}) == "\"on\": 1\n");
}

}  // namespace
}  // namespace tubed::docs
