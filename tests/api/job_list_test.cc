#include "api/job_list.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/api/api.h"

namespace tubed::api {
namespace {

struct ListedJob {
  std::uint64_t id = 0;
  std::uint64_t pri = 0;
  std::string state = "ready";
  std::string tags = {};
};

// `looked`: 0: the page of a list without filters.
protocol::Block job_page(const std::vector<ListedJob>& jobs, std::uint64_t next,
                         std::uint64_t looked) {
  return {[&jobs, next, looked](protocol::BlockSink& block) {
    using namespace commands;
    const auto columns =
        looked == 0 ? kJobColumns : std::span<const std::string_view>(kFilteredJobColumns);
    block.begin_table({.names = columns, .rest = kJobTags});
    for (const ListedJob& job : jobs) {
      std::array<protocol::Value, JobList::kColumns.size()> row;
      row[0] = job.id;
      row[1] = protocol::Plain{job.state};
      row[2] = job.pri;
      if (looked != 0) row[14] = protocol::Plain{"-"};
      row[columns.size()] = protocol::Plain{job.tags};
      block.row(std::span(row).first(columns.size() + (job.tags.empty() ? 0 : 1)));
    }
    if (looked != 0) block.looked_at(looked);
    block.end_table(next);
  }};
}

std::variant<JobList, Problem> make_list(Parameters parameters) {
  parameters.insert(parameters.begin(), {"tube", "mail"});
  return JobList::make(operation_of("listJobs"), std::move(parameters));
}

JobList job_list(const Parameters& parameters) {
  auto made = make_list(parameters);
  REQUIRE(std::holds_alternative<JobList>(made));
  return std::move(std::get<JobList>(made));
}

// The parameter that the problem names; empty: there is no problem.
std::string refused(const Parameters& parameters) {
  const auto made = make_list(parameters);
  const auto* problem = std::get_if<Problem>(&made);
  return problem == nullptr ? "" : problem->parameter;
}

// The ids of the rows, with a space after each.
std::string ids_in(std::string_view json) {
  constexpr std::string_view kId = "{\"id\":";
  std::string ids;
  for (std::size_t at = json.find(kId); at != std::string_view::npos; at = json.find(kId)) {
    json.remove_prefix(at + kId.size());
    ids.append(json.substr(0, json.find(','))).append(" ");
  }
  return ids;
}

std::string ids(const Parameters& parameters, const std::vector<ListedJob>& jobs) {
  JobList list = job_list(parameters);
  CHECK(list.add_page(job_page(jobs, 0, 0)) == 0);
  const std::string json = list.to_json();
  CHECK(is_json(json));
  return ids_in(json);
}

const std::vector<ListedJob> kJobs = {
    {1, 7}, {2, 10, "buried"}, {4, 7, "buried", "con:b"}, {3, 0, "ready", "con:a"}, {20, 9}};

TEST_CASE("jobs are sorted by a column, and those that are equal by id") {
  CHECK(ids({{"order", "asc"}}, kJobs) == "1 2 3 4 20 ");
  CHECK(ids({{"order", "desc"}}, kJobs) == "20 4 3 2 1 ");
  CHECK(ids({{"sort", "id"}}, kJobs) == "1 2 3 4 20 ");
  CHECK(ids({{"sort", "pri"}}, kJobs) == "3 1 4 20 2 ");
  CHECK(ids({{"sort", "pri"}, {"order", "desc"}}, kJobs) == "2 20 1 4 3 ");
  CHECK(ids({{"sort", "state"}}, kJobs) == "2 4 1 3 20 ");
  CHECK(ids({{"sort", "state"}, {"order", "desc"}}, kJobs) == "1 3 20 2 4 ");
  CHECK(ids({{"sort", "tags"}, {"order", "desc"}}, kJobs) == "4 3 1 2 20 ");
  CHECK(ids({{"sort", "bytes"}, {"order", "desc"}}, kJobs) == "1 2 3 4 20 ");
}

TEST_CASE("a row of a sorted list has the columns of its page and its tags") {
  JobList plain = job_list({{"sort", "pri"}, {"limit", "1"}});
  plain.add_page(job_page(kJobs, 0, 0));
  CHECK(plain.to_json() ==
        R"({"total":5,"next":1,"jobs":[{"id":3,"state":"ready","pri":0,"age":0,"delay":0,"ttr":0,)"
        R"("time-left":0,"reserves":0,"timeouts":0,"releases":0,"buries":0,"kicks":0,"bytes":0,)"
        R"("tags":"con:a"}]})"
        "\n");
  JobList filtered = job_list({{"sort", "failures"}, {"limit", "1"}, {"pri_over", "8"}});
  CHECK(filtered.add_page(job_page({{20, 9}}, 21, 400)) == 21);
  CHECK(filtered.add_page(job_page({}, 0, 23)) == 0);
  CHECK(filtered.to_json() ==
        R"({"total":1,"next":0,"looked":423,"jobs":[{"id":20,"state":"ready","pri":9,"age":0,)"
        R"("delay":0,"ttr":0,"time-left":0,"reserves":0,"timeouts":0,"releases":0,"buries":0,)"
        R"("kicks":0,"bytes":0,"failures":0,"dead-from":"-"}]})"
        "\n");
}

TEST_CASE("the lines of the pages have the filters, and the largest limit") {
  const JobList list =
      job_list({{"state", "all"}, {"sort", "age"}, {"limit", "7"}, {"from", "50"}, {"q", "a b"}});
  CHECK(std::get<std::string>(list.line_from(0)) == "list-jobs mail all 0 1000 body:a%20b\r\n");
  CHECK(std::get<std::string>(list.line_from(91)) == "list-jobs mail all 91 1000 body:a%20b\r\n");
}

TEST_CASE("pages of a sorted list of jobs follow one another") {
  std::vector<ListedJob> jobs;
  for (std::uint64_t i = 1; i <= 250; ++i) jobs.push_back({i, i % 7});
  std::string all;
  std::string from = "0";
  int pages = 0;
  do {
    JobList list = job_list({{"sort", "pri"}, {"from", from}});
    list.add_page(job_page(jobs, 0, 0));
    const std::string json = list.to_json();
    CHECK(member(json, "total") == "250");
    all += ids_in(json);
    from = member(json, "next");
    ++pages;
  } while (from != "0");
  CHECK(pages == 3);
  CHECK(std::ranges::count(all, ' ') == 250);
  CHECK(all.starts_with("7 14 21 "));
  CHECK(ids({{"sort", "pri"}, {"from", "250"}}, jobs).empty());
}

TEST_CASE("jobs that are not on the page are dropped, and counted") {
  JobList list = job_list({{"sort", "pri"}, {"order", "desc"}, {"from", "3"}, {"limit", "2"}});
  std::uint64_t id = 0;
  for (int pages = 0; pages < 30; ++pages) {
    std::vector<ListedJob> jobs;
    for (int i = 0; i < 1000; ++i, ++id) jobs.push_back({id, id * 7919 % 30'000});
    list.add_page(job_page(jobs, pages == 29 ? 0 : id, 0));
  }
  const std::string json = list.to_json();
  CHECK(member(json, "total") == "30000");
  CHECK(member(json, "next") == "5");
  CHECK(json.find("\"pri\":29996,") != std::string::npos);
  CHECK(json.find("\"pri\":29995,") != std::string::npos);
  CHECK(std::ranges::count(ids_in(json), ' ') == 2);
}

TEST_CASE("a sorted list of jobs ends after the most rows that it reaches") {
  std::vector<ListedJob> jobs;
  for (std::uint64_t i = 1; i <= ListWindow::kMostRows + 50; ++i) jobs.push_back({i, 0});
  JobList list = job_list({{"sort", "pri"}, {"from", "9990"}, {"limit", "100"}});
  list.add_page(job_page(jobs, 0, 0));
  const std::string json = list.to_json();
  CHECK(member(json, "total") == "10050");
  CHECK(member(json, "next") == "0");
  CHECK(ids_in(json).starts_with("9991 "));
  CHECK(ids_in(json).ends_with(" 10000 "));
}

TEST_CASE("a sorted list of jobs refuses values that are not in their range") {
  CHECK(refused({{"sort", "pri"}}).empty());
  CHECK(refused({{"sort", "body"}}) == "sort");
  CHECK(refused({{"sort", ""}}) == "sort");
  CHECK(refused({{"order", "up"}}) == "order");
  CHECK(refused({{"sort", "pri"}, {"limit", "0"}}) == "limit");
  CHECK(refused({{"sort", "pri"}, {"limit", "1001"}}) == "limit");
  CHECK(refused({{"sort", "pri"}, {"from", "10000"}}) == "from");
  CHECK(refused({{"sort", "pri"}, {"from", "x"}}) == "from");
  CHECK(refused({{"sort", "pri"}, {"state", "next"}}) == "sort");
  CHECK(refused({{"order", "desc"}, {"state", "next"}}) == "order");
  CHECK(refused({{"sort", "failures"}}) == "sort");
  CHECK(refused({{"sort", "dead-from"}, {"state", "all"}}) == "sort");
  CHECK(refused({{"sort", "dead-from"}, {"tag", "con:a"}}).empty());
}

}  // namespace
}  // namespace tubed::api
