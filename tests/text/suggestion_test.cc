#include "text/suggestion.h"

#include <vector>

#include <doctest/doctest.h>

namespace tubed::text_test {
namespace {

const std::vector<std::string> kWords{"peek", "put", "limits.connections", "pause"};

TEST_CASE("the nearest word is suggested") {
  CHECK(did_you_mean("peeek", kWords) == "did you mean peek?");
  CHECK(did_you_mean("pat", kWords) == "did you mean put?");
  CHECK(did_you_mean("puse", kWords) == "did you mean pause?");
  CHECK(suggestion("puse", kWords) == " (did you mean pause?)");
}

TEST_CASE("a word may be near the last part of a name") {
  CHECK(did_you_mean("conections", kWords) == "did you mean limits.connections?");
}

TEST_CASE("of equally near words the first is suggested") {
  CHECK(did_you_mean("pet", std::vector<std::string>{"put", "pot"}) == "did you mean put?");
}

TEST_CASE("a third of a word may differ, and three letters at most") {
  CHECK(did_you_mean("pxxt", kWords).empty());
  CHECK(did_you_mean("coxxxctions", kWords) == "did you mean limits.connections?");
  CHECK(did_you_mean("coxxxxtions", kWords).empty());
  CHECK(suggestion("stats", kWords).empty());
  CHECK(did_you_mean("put", {}).empty());
}

TEST_CASE("a long word is near no word") {
  CHECK(did_you_mean(std::string(101, 'p'), std::vector{std::string(101, 'p')}).empty());
  CHECK(suggestion(std::string(100, 'p'), std::vector{std::string(100, 'p')}) ==
        " (did you mean " + std::string(100, 'p') + "?)");
}

}  // namespace
}  // namespace tubed::text_test
