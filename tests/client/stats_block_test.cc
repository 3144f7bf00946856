#include "client/stats_block.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tubed::client {

TEST_CASE("stats are keys and values, in order") {
  const StatsBlock stats(
      "---\nname: \"1.0\"\ncurrent-jobs-ready: 17\nrusage-utime: 0.5\nempty: \n");
  REQUIRE(stats.lines().size() == 4);
  CHECK(stats.lines()[0].key == "name");
  CHECK(stats.lines()[0].value == "1.0");
  CHECK(stats.lines()[0].quoted);
  CHECK_FALSE(stats.lines()[1].quoted);
  CHECK(stats.text("name") == "1.0");
  CHECK(stats.number("current-jobs-ready") == 17);
  CHECK(stats.count("current-jobs-ready") == 17);
  CHECK(stats.text("empty") == "");
}

TEST_CASE("a value may be missing, or not a number") {
  const StatsBlock stats(
      "---\na: 1.5\nb: -1\nc: 18446744073709551615\nd: 18446744073709551616\ne: 1x\n");
  CHECK_FALSE(stats.number("a"));
  CHECK_FALSE(stats.number("b"));
  CHECK(stats.number("c") == UINT64_MAX);
  CHECK_FALSE(stats.number("d"));
  CHECK_FALSE(stats.number("e"));
  CHECK_FALSE(stats.text("f"));
  CHECK(stats.count("a") == 0);
  CHECK(stats.count("f") == 0);
}

TEST_CASE("other lines are ignored, and the last line may lack its end") {
  CHECK(StatsBlock("").lines().empty());
  CHECK(StatsBlock("---").lines().empty());
  CHECK(StatsBlock("---\n\nnothing\n").lines().empty());
  CHECK(StatsBlock("a: 1").count("a") == 1);
  CHECK(StatsBlock("a: b: c\n").text("a") == "b: c");
  CHECK(StatsBlock("a: \"\n").text("a") == "\"");
  CHECK(StatsBlock("a: \"\"\n").text("a") == "");
}

TEST_CASE("a list consists of names") {
  using Names = std::vector<std::string>;
  CHECK(list_items("---\n- default\n- a-b\n- 1.0\n") == Names{"default", "a-b", "1.0"});
  CHECK(list_items("---\n").empty());
  CHECK(list_items("").empty());
  CHECK(list_items("---\nname: x\n- last") == Names{"last"});
}

TEST_CASE("characters that a reply cannot contain become question marks") {
  CHECK(list_items("- a\x1b[m\x7f\xc2\x9b\n").front() == "a?[m???");
  CHECK(StatsBlock("name: \r\x9b\n").text("name") == "??");
}

}  // namespace tubed::client
