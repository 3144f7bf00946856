#include "text/units.h"

#include <doctest/doctest.h>

namespace tubed {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

std::optional<std::int64_t> size_in(std::string_view text) {
  const auto quantity = parse_quantity<std::int64_t>(text, kSizeUnits, 1);
  return quantity && quantity->fits ? std::optional(quantity->number) : std::nullopt;
}

}  // namespace

TEST_CASE("a quantity is a whole number with a unit or without") {
  CHECK(size_in("0") == 0);
  CHECK(size_in("-3KiB") == -3072);
  CHECK(size_in("8191PiB") == 8191LL << 50);
  for (const char* const text : {"", "KiB", "1 KiB", "1kib", "1.5KiB", "+1", "0x1", "1s"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_quantity<std::int64_t>(text, kSizeUnits, 1));
  }
  CHECK_FALSE(parse_quantity<std::uint64_t>("-0", kSizeUnits, 1));
}

TEST_CASE("a quantity is a multiple of the resolution") {
  const auto milliseconds = [](std::string_view text) {
    return parse_quantity<std::uint64_t>(text, kTimeUnits, kSecondSize, kMillisecondSize)->number;
  };
  CHECK(milliseconds("90") == 90'000);
  CHECK(milliseconds("90ms") == 90);
  CHECK(milliseconds("1d") == 86'400'000);
}

TEST_CASE("a quantity that does not fit is the nearest number") {
  for (const char* const text : {"9223372036854775808", "8192PiB", "99999999999999999999KiB"}) {
    CAPTURE(text);
    const auto quantity = parse_quantity<std::int64_t>(text, kSizeUnits, 1);
    CHECK_FALSE(quantity->fits);
    CHECK(quantity->number == kLargest);
  }
  CHECK(parse_quantity<std::int64_t>("-8193PiB", kSizeUnits, 1)->number == -kLargest - 1);
}

TEST_CASE("a time in words has its two largest units") {
  CHECK(time_in_words(0) == "0s");
  CHECK(time_in_words(59) == "59s");
  CHECK(time_in_words(60) == "1m00s");
  CHECK(time_in_words(85) == "1m25s");
  CHECK(time_in_words(3599) == "59m59s");
  CHECK(time_in_words(3600) == "1h00m");
  CHECK(time_in_words(85'400) == "23h43m");
  CHECK(time_in_words(86'400) == "1d00h");
  CHECK(time_in_words(4'294'967'295) == "49710d06h");
}

TEST_CASE("a quantity is written with the largest unit that divides it") {
  CHECK(quantity_text(0, kSizeUnits) == "0");
  CHECK(quantity_text(1025, kSizeUnits) == "1025");
  CHECK(quantity_text(1 << 30, kSizeUnits) == "1GiB");
  CHECK(quantity_text(90 * kSecondSize, kTimeUnits) == "90s");
  CHECK(quantity_text(1500 * kMillisecondSize, kTimeUnits) == "1500ms");
}

}  // namespace tubed
