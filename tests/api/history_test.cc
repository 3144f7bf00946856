#include "api/history.h"

#include <cstdint>

#include <doctest/doctest.h>

#include "commands/table.h"
#include "stats/stats.h"
#include "tests/api/api.h"

namespace tubed::api {
namespace {

protocol::Block block(std::uint64_t ready) {
  return {[ready](protocol::BlockSink& sink) {
    sink.member("current-jobs-urgent", std::uint64_t{5});
    sink.member("current-jobs-ready", ready);
    sink.member("version", protocol::Text{"2"});
    sink.member("total-jobs", UINT64_MAX);
  }};
}

// The number of samples.
std::size_t samples_in(std::string_view json) {
  return static_cast<std::size_t>(std::ranges::count(json.substr(json.find("samples")), ']')) - 1;
}

TEST_CASE("each line that is kept is a line of stats") {
  std::vector<std::string> keys;
  for (const auto& text : stats::server_stats_texts(commands::command_counts()))
    keys.push_back(text.key);
  for (const std::string_view key : History::kKeys) {
    CAPTURE(key);
    CHECK(std::ranges::find(keys, key) != keys.end());
  }
}

TEST_CASE("an empty history is JSON") {
  CHECK(History().to_json() ==
        R"({"interval":5,"columns":["time","current-jobs-ready","current-jobs-reserved",)"
        R"("current-jobs-delayed","current-jobs-buried","total-jobs","job-timeouts","cmd-delete",)"
        R"("current-connections","current-workers","current-waiting","job-memory",)"
        R"("journal-bytes","journal-live-bytes"],"samples":[]})"
        "\n");
}

TEST_CASE("a sample has the numbers of its lines, and 0 for a line that is not there") {
  History history;
  history.add(1'700'000'000, block(7));
  history.add(1'700'000'005, block(8));
  const std::string text = history.to_json();
  CHECK(is_json(text));
  CHECK(
      text.ends_with("\"samples\":[[1700000000,7,0,0,0,18446744073709551615,0,0,0,0,0,0,0,0],"
                     "[1700000005,8,0,0,0,18446744073709551615,0,0,0,0,0,0,0,0]]}\n"));
}

TEST_CASE("the oldest samples go first, also after the history was cleared") {
  History history;
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t i = 0; i < History::kSamples + 3; ++i) history.add(1000 + i, block(i));
    const std::string text = history.to_json();
    CHECK(is_json(text));
    CHECK(samples_in(text) == History::kSamples);
    CHECK(text.find("\"samples\":[[1003,3,") != std::string::npos);
    CHECK(text.find(",[1722,722,0,0,0,18446744073709551615,0,0,0,0,0,0,0,0]]}") !=
          std::string::npos);
    history.clear();
    CHECK(samples_in(history.to_json()) == 0);
  }
}

TEST_CASE("a sample of the real block of stats has its numbers") {
  Api api;
  api.run("put 0 0 60 1\r\na\r\nput 0 9 60 1\r\na\r\n");
  History history;
  history.add(1, api.service.stats_block());
  CHECK(history.to_json().find("\"samples\":[[1,1,0,1,0,2,0,0,1,") != std::string::npos);
}

}  // namespace
}  // namespace tubed::api
