#include "options/value.h"

#include <string>

#include <doctest/doctest.h>

namespace tubed::options_test {
namespace {

using options::normalized;
using options::ValueType;

std::string value(const ValueType& type, std::string_view text) {
  auto result = normalized(type, text);
  return result ? *result : "error: " + result.error().message;
}

TEST_CASE("times become plain numbers of their unit") {
  CHECK(value(options::seconds(), "90") == "90");
  CHECK(value(options::seconds(), "5m") == "300");
  CHECK(value(options::seconds(), "1d") == "86400");
  CHECK(value(options::milliseconds(), "5m") == "300000");
  CHECK(value(options::milliseconds(), "500ms") == "500");
  CHECK(value(options::time(0, 100), "0.5") == "0.5");
  CHECK(value(options::time(0, 100), "50ms") == "0.05");
  CHECK(value(options::time(0, 100), "1.5m") == "90");
}

TEST_CASE("a size has binary units") {
  CHECK(value(options::size(0, 1 << 30), "64KiB") == "65536");
  CHECK(value(options::size(0, 1 << 30), "1GiB") == "1073741824");
  CHECK(value(options::size(0, 10), "1KiB") ==
        "error: \"1KiB\" is not a size in bytes from 0 to 10, as 65535, 64KiB or 1GiB");
}

TEST_CASE("a number is within its range, and has neither sign nor space") {
  const auto type = options::count(1, 20);
  CHECK(value(type, "1") == "1");
  CHECK(value(type, "0020") == "20");
  for (const auto* text :
       {"0", "21", "", "-1", "+1", " 1", "1 ", "1s", "x", "1.5", "0x1", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK(value(type, text) ==
          std::string("error: \"") + text + "\" is not a whole number from 1 to 20");
  }
  CHECK(value(options::count(3), "2") == "error: \"2\" is not a whole number from 3 on");
  for (const auto* text : {"nan", "inf", "1e9", "1.5s"})
    CHECK(!normalized(options::number(0, 5), text));
  CHECK(value(options::number(0, 5), "1e-1") == "0.1");
  CHECK(value(options::number(0, 5), "1ms") == "error: \"1ms\" is not a number from 0 to 5");
}

TEST_CASE("a choice is one of its words") {
  static constexpr std::string_view kWords[]{"ready", "buried"};
  const auto type = options::choice("STATE", kWords);
  CHECK(value(type, "buried") == "buried");
  CHECK(value(type, "burie") == "error: burie not in {ready,buried}");
  CHECK(options::shown_value(type) == "STATE:{ready,buried}");
  CHECK(options::shown_value(options::count(1)) == "N");
}

TEST_CASE("a text may have a check") {
  const ValueType type{.kind = ValueType::Kind::text,
                       .placeholder = "NAME",
                       .check = [](std::string_view text) -> Result<void> {
                         if (text == "no") return options::not_a_value(text, "a yes");
                         return {};
                       }};
  CHECK(value(type, "yes") == "yes");
  CHECK(value(type, "no") == "error: \"no\" is not a yes");
  CHECK(value(options::text("TEXT"), "") == "");
}

TEST_CASE("a message shows the beginning of a long value") {
  CHECK(options::not_a_value(std::string(100, 'x'), "short").message ==
        '"' + std::string(40, 'x') + "\" is not short");
}

}  // namespace
}  // namespace tubed::options_test
