#include "tools/docs/document.h"

#include <doctest/doctest.h>

#include "json/json.h"

namespace tubed::docs {
namespace {

TEST_CASE("maps, lists and scalars are written as YAML and as JSON") {
  Document document = {{"a", 1}, {"b", {{"c", true}, {"d", Document()}}}};
  document["e"] = Document::list({"x", 2, {{"f", "g"}, {"h", Document::texts({"i"})}}});
  document["j"] = Document::list({});
  CHECK(document.to_yaml() ==
        "a: 1\nb:\n  c: true\n  d: {}\ne:\n  - x\n  - 2\n  - f: g\n    h:\n      - i\nj: []\n");
  CHECK(document.to_json() ==
        R"({"a":1,"b":{"c":true,"d":{}},"e":["x",2,{"f":"g","h":["i"]}],"j":[]})"
        "\n");
}

TEST_CASE("text that YAML would take for another type is quoted") {
  const auto yaml = [](std::string_view text) { return Document{{"a", text}}.to_yaml(); };
  CHECK(yaml("Plain words, (with) dots.") == "a: Plain words, (with) dots.\n");
  for (const std::string_view text :
       {"",     "true", "No", "null", "Y",   "200", "1.0", "-",   "- a",  "a: b",
        "a #b", " a",   "a ", "{a}",  "[a]", "*a",  "&a",  "!a",  "a\nb", "\"a\"",
        "'a'",  "a\\b", "~",  "%a",   "@a",  "`a`", "a:b", "a/b", "a<b"}) {
    CAPTURE(text);
    std::string quoted;
    json::append_text(text, quoted);
    CHECK(yaml(text) == "a: " + quoted + "\n");
  }
  CHECK(Document{{"200", 1}}.to_yaml() == "\"200\": 1\n");
  CHECK(Document{{"on", 1}}.to_yaml() == "\"on\": 1\n");
}

}  // namespace
}  // namespace tubed::docs
