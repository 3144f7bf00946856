#include "api/tube_list.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/api/api.h"

namespace tubed::api {
namespace {

struct Tube {
  std::string name;
  std::uint64_t ready = 0;
};

protocol::Block page(const std::vector<Tube>& tubes, std::uint64_t next) {
  return {[&tubes, next](protocol::BlockSink& block) {
    block.begin_table({.names = stats::kListedTubeNames});
    for (const Tube& tube : tubes) {
      std::array<protocol::Value, stats::kListedTubeColumns> row;
      row[0] = protocol::Plain{tube.name};
      row[2] = tube.ready;
      block.row(row);
    }
    block.end_table(next);
  }};
}

TubeList list_of(const Parameters& parameters) {
  auto made = TubeList::make(parameters);
  REQUIRE(std::holds_alternative<TubeList>(made));
  return std::move(std::get<TubeList>(made));
}

bool is_refused(const Parameters& parameters) {
  return std::holds_alternative<Problem>(TubeList::make(parameters));
}

// The names of the rows, with a space after each.
std::string names_in(std::string_view json) {
  constexpr std::string_view kName = "{\"name\":\"";
  std::string names;
  for (std::size_t at = json.find(kName); at != std::string_view::npos; at = json.find(kName)) {
    json.remove_prefix(at + kName.size());
    names.append(json.substr(0, json.find('"'))).append(" ");
  }
  return names;
}

std::string names(const Parameters& parameters, const std::vector<Tube>& tubes) {
  TubeList list = list_of(parameters);
  CHECK(list.add_page(page(tubes, 0)) == 0);
  const std::string json = list.to_json();
  CHECK(is_json(json));
  return names_in(json);
}

const std::vector<Tube> kTubes = {{"b", 2}, {"a", 10}, {"d", 2}, {"c", 0}, {"aa", 9}};

TEST_CASE("rows are sorted by a column, and those that are equal by name") {
  CHECK(names({}, kTubes) == "a aa b c d ");
  CHECK(names({{"order", "desc"}}, kTubes) == "d c b aa a ");
  CHECK(names({{"sort", "name"}}, kTubes) == "a aa b c d ");
  CHECK(names({{"sort", "ready"}}, kTubes) == "c b d aa a ");
  CHECK(names({{"sort", "ready"}, {"order", "desc"}}, kTubes) == "a aa b d c ");
  CHECK(names({{"sort", "pause-left"}, {"order", "desc"}}, kTubes) == "a aa b c d ");
}

TEST_CASE("a filter is a part of a name") {
  CHECK(names({{"filter", "a"}}, kTubes) == "a aa ");
  CHECK(names({{"filter", ""}}, kTubes) == "a aa b c d ");
  CHECK(names({{"filter", "0"}}, kTubes).empty());
  CHECK(names({{"filter", "b 0"}}, kTubes).empty());
}

TEST_CASE("pages follow one another") {
  std::vector<Tube> tubes;
  for (std::uint64_t i = 0; i < 250; ++i) tubes.push_back({fmt::format("t{:03}", i), i % 7});
  std::string all;
  std::string from = "0";
  int pages = 0;
  do {
    TubeList list = list_of({{"sort", "ready"}, {"from", from}});
    list.add_page(page(tubes, 0));
    const std::string json = list.to_json();
    CHECK(member(json, "total") == "250");
    all += names_in(json);
    from = member(json, "next");
    ++pages;
  } while (from != "0");
  CHECK(pages == 3);
  CHECK(std::ranges::count(all, ' ') == 250);
  CHECK(all.starts_with("t000 t007 t014 "));
  CHECK(names({{"from", "250"}}, tubes).empty());
  CHECK(names({{"from", "249"}}, tubes) == "t249 ");
}

TEST_CASE("rows that are not on the page are dropped, and counted") {
  TubeList list = list_of({{"sort", "ready"}, {"order", "desc"}, {"from", "3"}, {"limit", "2"}});
  std::uint64_t number = 0;
  for (int pages = 0; pages < 30; ++pages) {
    std::vector<Tube> tubes;
    for (int i = 0; i < 1000; ++i, ++number)
      tubes.push_back({fmt::format("t{}", number), number * 7919 % 30'000});
    CHECK(list.add_page(page(tubes, pages == 29 ? 0 : number)) == (pages == 29 ? 0 : number));
  }
  const std::string json = list.to_json();
  CHECK(member(json, "total") == "30000");
  CHECK(member(json, "next") == "5");
  CHECK(json.find("\"ready\":29996,") != std::string::npos);
  CHECK(json.find("\"ready\":29995,") != std::string::npos);
  CHECK(names_in(json).size() < 15);
}

TEST_CASE("a list ends after the most rows that it reaches") {
  std::vector<Tube> tubes;
  for (std::uint64_t i = 0; i < ListWindow::kMostRows + 50; ++i)
    tubes.push_back({fmt::format("t{:05}", i), 0});
  TubeList last = list_of({{"from", "9900"}, {"limit", "1000"}});
  last.add_page(page(tubes, 0));
  const std::string json = last.to_json();
  CHECK(member(json, "next") == "0");
  CHECK(member(json, "total") == "10050");
  CHECK(names_in(json).ends_with("t09999 "));
  CHECK(is_refused({{"from", "10000"}}));
}

TEST_CASE("values that a list does not take") {
  CHECK(is_refused({{"sort", "age"}}));
  CHECK(is_refused({{"sort", ""}}));
  CHECK(is_refused({{"order", "ASC"}}));
  CHECK(is_refused({{"from", "x"}}));
  CHECK(is_refused({{"from", ""}}));
  CHECK(is_refused({{"from", "-1"}}));
  CHECK(is_refused({{"from", "18446744073709551615"}}));
  CHECK(is_refused({{"limit", "0"}}));
  CHECK(is_refused({{"limit", "1001"}}));
  CHECK(is_refused({{"limit", "1 "}}));
}

TEST_CASE("an empty list is JSON") {
  TubeList list = list_of({{"limit", "1"}});
  list.add_page(page({}, 0));
  CHECK(list.to_json() == "{\"total\":0,\"next\":0,\"tubes\":[]}\n");
}

}  // namespace
}  // namespace tubed::api
