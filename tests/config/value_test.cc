#include "config/value.h"

#include <array>
#include <limits>

#include <doctest/doctest.h>

#include "config/settings.h"

namespace tubed::config {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr Type kBytes{.kind = Kind::bytes, .maximum = kLargest};
constexpr Type kDuration{.kind = Kind::duration, .maximum = kLargest};
constexpr std::int64_t kMillisecond = 1'000'000;

std::int64_t read(const Type& type, std::string_view text) {
  const auto value = value_from_text(type, text);
  return value ? value.value().number : -1;
}

TEST_CASE("sizes are read with their unit and written in the shortest exact form") {
  CHECK(read(kBytes, "0") == 0);
  CHECK(read(kBytes, "1023") == 1023);
  CHECK(read(kBytes, "64KiB") == 65'536);
  CHECK(read(kBytes, "1MiB") == 1 << 20);
  CHECK(read(kBytes, "2GiB") == 2LL << 30);
  for (const auto* text : {"64 KiB", "64kib", "64K", "64KB", "1.5GiB", "KiB", "+1", "0x10", " 1"}) {
    CAPTURE(text);
    CHECK_FALSE(value_from_text(kBytes, text).ok());
  }
  CHECK(to_toml(kBytes, std::int64_t{65'535}) == "65535");
  CHECK(to_toml(kBytes, std::int64_t{65'536}) == "\"64KiB\"");
  CHECK(to_toml(kBytes, std::int64_t{1} << 30) == "\"1GiB\"");
  CHECK(to_toml(kBytes, (std::int64_t{1} << 30) + 1024) == "\"1048577KiB\"");
  CHECK(to_toml(kBytes, std::int64_t{0}) == "0");
}

TEST_CASE("durations are read with their unit and written in the shortest exact form") {
  CHECK(read(kDuration, "50ms") == 50 * kMillisecond);
  CHECK(read(kDuration, "30s") == 30'000 * kMillisecond);
  CHECK(read(kDuration, "30") == 30'000 * kMillisecond);
  CHECK(read(kDuration, "5m") == 300'000 * kMillisecond);
  CHECK(read(kDuration, "2h") == 7'200'000 * kMillisecond);
  CHECK(read(kDuration, "1d") == 86'400'000 * kMillisecond);
  for (const auto* text : {"1 s", "1S", "1us", "1.5s", "1m30s", "s", "", "1week"}) {
    CAPTURE(text);
    CHECK_FALSE(value_from_text(kDuration, text).ok());
  }
  CHECK(value_from_integer(kDuration, 60).value().number == 60'000 * kMillisecond);
  CHECK(to_toml(kDuration, 60'000 * kMillisecond) == "\"1m\"");
  CHECK(to_toml(kDuration, 90'000 * kMillisecond) == "\"90s\"");
  CHECK(to_toml(kDuration, 1'500 * kMillisecond) == "\"1500ms\"");
  CHECK(to_toml(kDuration, 48 * 3'600'000 * kMillisecond) == "\"2d\"");
  CHECK(to_toml(kDuration, std::int64_t{0}) == "0");
}

TEST_CASE("a sync is a word or a duration within its bounds") {
  constexpr Type sync{
      .kind = Kind::sync, .minimum = kMillisecond, .maximum = 3'600'000 * kMillisecond};
  CHECK(read(sync, "always") == kSyncAlways.count());
  CHECK(read(sync, "never") == kSyncNever.count());
  CHECK(read(sync, "0") == kSyncAlways.count());
  CHECK(read(sync, "0ms") == kSyncAlways.count());
  CHECK(read(sync, "1ms") == kMillisecond);
  CHECK(read(sync, "3600") == 3'600'000 * kMillisecond);
  // The largest number of all is the word's alone.
  CHECK_FALSE(value_from_integer(sync, kLargest).ok());
  for (const auto* text : {"", "Always", "alway", "never ", "off", "1us", "-1ms", "3601s",
                           "9223372036854775807", "9223372036854775807d"}) {
    CAPTURE(text);
    CHECK_FALSE(value_from_text(sync, text).ok());
  }
  CHECK(to_toml(sync, std::int64_t{kSyncAlways.count()}) == "\"always\"");
  CHECK(to_toml(sync, std::int64_t{kSyncNever.count()}) == "\"never\"");
  CHECK(to_toml(sync, 50 * kMillisecond) == "\"50ms\"");
  CHECK(to_text(sync, 60'000 * kMillisecond) == "1m");
  CHECK(bounds(sync) == "always, never or 1ms to 1h");
}

TEST_CASE("numbers that do not fit saturate") {
  constexpr Type bounded{.kind = Kind::bytes, .maximum = 1000};
  CHECK(value_from_text(bounded, "18014398509481984KiB").error().message ==
        "18014398509481984KiB is above the maximum of 1000");
  CHECK(value_from_text(bounded, "-18014398509481984KiB").error().message ==
        "-18014398509481984KiB is below the minimum of 0");
  CHECK_FALSE(value_from_integer({.kind = Kind::duration, .maximum = kMillisecond}, kLargest).ok());
  CHECK_FALSE(
      value_from_integer({.kind = Kind::duration, .maximum = kMillisecond}, -kLargest).ok());
}

TEST_CASE("modes are octal") {
  constexpr Type mode{.kind = Kind::mode};
  CHECK(read(mode, "0660") == 0660);
  CHECK(read(mode, "660") == 0660);
  CHECK(read(mode, "0") == 0);
  CHECK(read(mode, "0777") == 0777);
  for (const auto* text : {"1000", "0888", "-1", "", "0o660", "rw"}) {
    CAPTURE(text);
    CHECK_FALSE(value_from_text(mode, text).ok());
  }
  CHECK(to_toml(mode, std::int64_t{0660}) == "\"0660\"");
  CHECK(to_toml(mode, std::int64_t{0}) == "\"0000\"");
}

TEST_CASE("a list is an array of texts, and a flag has commas between them") {
  constexpr Type list{.kind = Kind::list, .unit = "FILES", .may_be_empty = true};
  constexpr Type not_empty{.kind = Kind::list, .unit = "FILES"};
  CHECK_FALSE(value_from_text(not_empty, "").ok());
  CHECK_FALSE(value_from_list(not_empty, {}).ok());
  CHECK(value_from_list(not_empty, {"a"}).ok());
  const auto parts = [&](std::string_view text) {
    return value_from_text(list, text).value().list;
  };
  CHECK(parts("") == std::vector<std::string>());
  CHECK(parts("/a") == std::vector<std::string>{"/a"});
  CHECK(parts("/a,b c") == std::vector<std::string>{"/a", "b c"});
  for (const auto* text : {",", ",a", "a,,b", "a\n", "a,\xff"}) {
    CAPTURE(text);
    CHECK_FALSE(value_from_text(list, text).ok());
  }
  CHECK(value_from_list(list, {"a,b"}).value().list == std::vector<std::string>{"a,b"});
  CHECK_FALSE(value_from_list(list, {"a", ""}).ok());
  CHECK_FALSE(value_from_integer(list, 1).ok());
  CHECK(to_text(list, std::vector<std::string>{"a", "b"}) == "a,b");
  CHECK(to_text(list, std::vector<std::string>()).empty());
  CHECK(to_toml(list, std::vector<std::string>{"a \"b\"", "c\\"}) == R"(["a \"b\"", "c\\"])");
  CHECK(to_toml(list, std::vector<std::string>()) == "[]");
  CHECK(expected(list) == "an array of strings");
  CHECK(bounds(list).empty());
  CHECK(placeholder(list) == "FILES");
}

TEST_CASE("a list of words has no other words") {
  static constexpr auto kWords = std::to_array<std::string_view>({"put", "take"});
  constexpr Type list{.kind = Kind::list, .choices = kWords};
  CHECK(value_from_text(list, "take,put").value().list == std::vector<std::string>{"take", "put"});
  CHECK(value_from_list(list, {"take", "tak"}).error().message ==
        "\"tak\" is not one of put, take");
  CHECK(expected(list) == "some of put, take");
  CHECK(bounds(list) == "put, take");
}

TEST_CASE("plain text is UTF-8 without control characters") {
  for (const auto* text :
       {"", "tubed", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "a \"\\ b"}) {
    CAPTURE(text);
    CHECK(is_plain_text(text));
  }
  for (const auto* text : {"\n", "\t", "\x7f", "\xff", "\xc3", "\xc0\x80", "\xe0\x80\x80",
                           "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "a\x80"}) {
    CAPTURE(text);
    CHECK_FALSE(is_plain_text(text));
  }
  CHECK(in_quotes("a\nb\xff") == "\"a?b?\"");
  CHECK(printable(std::string(1000, 'x')).size() == 203);
}

}  // namespace
}  // namespace tubed::config
