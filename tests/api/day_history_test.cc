#include "api/day_history.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/crc32c.h"
#include "commands/table.h"
#include "stats/stats.h"
#include "tests/api/api.h"
#include "tests/share.h"
#include "text/numbers.h"

namespace tubed::api {
namespace {

using namespace std::chrono_literals;

// Begins with a minute.
constexpr Duration kWall = std::chrono::minutes(28'333'334);

using Row = std::map<std::string, std::uint64_t, std::less<>>;

// The samples of a history, by the names of their columns.
std::vector<Row> rows_of(std::string_view json) {
  REQUIRE(is_json(json));
  const auto list = [](std::string_view text, std::string_view from) {
    text.remove_prefix(text.find(from) + from.size());
    return text;
  };
  std::vector<std::string> columns;
  std::string_view names = list(json, "\"columns\":[");
  names = names.substr(0, names.find(']'));
  while (!names.empty()) {
    names.remove_prefix(1);
    columns.emplace_back(names.substr(0, names.find('"')));
    names.remove_prefix(columns.back().size() + 1);
    names.remove_prefix(names.starts_with(',') ? 1 : 0);
  }
  std::vector<Row> rows;
  std::string_view rest = list(json, "\"samples\":[");
  while (rest.starts_with('[') || rest.starts_with(",[")) {
    rest.remove_prefix(rest.find('[') + 1);
    Row& row = rows.emplace_back();
    for (const std::string& column : columns) {
      row[column] = take_number<std::uint64_t>(rest).value();
      rest.remove_prefix(1);
    }
  }
  return rows;
}

// A server with a history, and a clock that the test moves.
class Day : public Api {
 public:
  Day() : Api(Limits{}) {}

  void sample() {
    history.sample({.wall = wall, .steady = Time(steady)}, service.stats_block(), service.engine());
  }
  // Samples every `step` until this time has passed.
  void pass(Duration time, Duration step = 5s) {
    for (Duration end = steady + time; steady < end;) {
      steady += step;
      wall += step;
      advance(step);
      sample();
    }
  }
  void suspend(Duration time) {
    steady += time;
    wall += time;
  }
  void put(std::string_view tube, int times = 1) {
    for (int i = 0; i < times; ++i) run(fmt::format("put-in-tube {} 0 0 100 1\r\na\r\n", tube));
  }
  std::vector<Row> server() const { return rows_of(history.to_json(nullptr)); }
  std::vector<Row> tube(std::string_view name, std::size_t minutes = 1440) const {
    const auto json = history.tube_json(name, minutes);
    REQUIRE(json);
    return rows_of(*json);
  }
  bool has(std::string_view name) const { return history.tube_json(name, 1).has_value(); }

  DayHistory history;
  Duration wall = kWall;
  Duration steady = 1h;
};

std::uint64_t seconds(Duration time) {
  return static_cast<std::uint64_t>(whole_seconds(time));
}

std::uint64_t sum(const std::vector<Row>& rows, std::string_view column) {
  std::uint64_t total = 0;
  for (const Row& row : rows) total += row.find(column)->second;
  return total;
}

TEST_CASE("each gauge of the history of a day is a line of stats") {
  std::vector<std::string> keys;
  for (const auto& text : stats::server_stats_texts(commands::command_counts()))
    keys.push_back(text.key);
  for (const std::string_view key : DayHistory::kGauges) {
    CAPTURE(key);
    CHECK(std::ranges::find(keys, key) != keys.end());
  }
}

TEST_CASE("an empty history of a day is JSON") {
  const DayHistory history;
  CHECK(history.to_json(nullptr) ==
        R"({"interval":60,"columns":["time","seconds","current-jobs-ready",)"
        R"("current-jobs-reserved","current-jobs-delayed","current-jobs-buried",)"
        R"("current-connections","current-workers","current-waiting","job-memory",)"
        R"("journal-bytes","journal-live-bytes","puts","reserves","deletes","timeouts"],)"
        R"("samples":[],"tubes":[]})"
        "\n");
  CHECK(DayHistory::empty_tube_json() ==
        R"({"interval":60,"columns":["time","seconds","ready","reserved","delayed","buried",)"
        R"("puts","reserves","deletes","timeouts"],"samples":[]})"
        "\n");
  CHECK_FALSE(history.tube_json("default", 60));
}

TEST_CASE("a minute has what was counted in it, and the jobs at its end") {
  Day day;
  day.sample();
  day.pass(10s);
  day.put("a", 5);
  day.run("watch a\r\nreserve\r\nreserve\r\n");
  day.pass(20s);
  day.run("delete 1\r\nbury 2 0\r\nput 0 9 60 1\r\nb\r\n");
  day.pass(25s);
  day.pass(55s);
  day.put("a");
  day.pass(5s);
  const auto server = day.server();
  REQUIRE(server.size() == 2);
  CHECK(server[0].at("time") == seconds(kWall));
  CHECK(server[0].at("seconds") == 55);
  CHECK(server[0].at("puts") == 6);
  CHECK(server[0].at("reserves") == 2);
  CHECK(server[0].at("deletes") == 1);
  CHECK(server[0].at("timeouts") == 0);
  CHECK(server[0].at("current-jobs-ready") == 4);
  CHECK(server[0].at("current-jobs-buried") == 1);
  CHECK(server[1].at("time") == seconds(kWall) + 60);
  CHECK(server[1].at("seconds") == 60);
  CHECK(server[1].at("puts") == 1);
  CHECK(server[1].at("current-jobs-ready") == 5);
  // The tube was created after the first sample.
  const auto tube = day.tube("a");
  CHECK(sum(tube, "deletes") == 1);
  CHECK(tube.back().at("ready") == 4);
  CHECK(tube.back().at("buried") == 1);
  CHECK(tube.back().at("puts") == 1);
}

TEST_CASE("a TTR that ends is a timeout of the server and of its tube") {
  Day day;
  day.put("a");
  day.sample();
  day.run("watch a\r\nreserve\r\n");
  day.pass(3min);
  CHECK(sum(day.server(), "timeouts") == 1);
  CHECK(sum(day.tube("a"), "timeouts") == 1);
  CHECK(sum(day.tube("a"), "reserves") == 1);
}

TEST_CASE("a day has 1,440 points, and an hour of a tube 60") {
  Day day;
  day.put("a");
  day.sample();
  std::uint64_t put = 0;
  for (int minute = 0; minute < 1500; ++minute) {
    if (minute > 60) put += static_cast<std::uint64_t>(minute % 3);  // the others are gone
    day.put("a", minute % 3);
    day.pass(1min, 20s);
  }
  const auto server = day.server();
  REQUIRE(server.size() == 1440);
  for (std::size_t i = 0; i < server.size(); ++i) {
    CHECK(server[i].at("time") == seconds(day.wall) - 60 * (1439 - i));
    CHECK(server[i].at("seconds") <= 60);
  }
  CHECK(day.tube("a").size() == 1440);
  CHECK(day.tube("a", 60).size() == 60);
  CHECK(day.tube("a", 60).back() == day.tube("a").back());
  CHECK(sum(server, "puts") == put);
  // Points that are older than a day are not shown, however few points there are.
  day.suspend(23h);
  day.pass(1min);
  CHECK(day.server().size() < 70);
  CHECK(day.server().front().at("time") + 24 * 3600 > seconds(day.wall));
}

TEST_CASE("a time without samples is a gap, and what happened in it is left out") {
  Day day;
  day.sample();
  day.put("a");
  day.pass(2min);
  const std::size_t before = day.server().size();
  day.put("a", 7);
  day.suspend(10min);
  day.sample();
  CHECK(day.server().size() == before);
  day.put("a");
  day.pass(1min);
  const auto server = day.server();
  CHECK(sum(server, "puts") == 2);
  CHECK(sum(day.tube("a"), "puts") <= 2);
  CHECK(server[before].at("time") - server[before - 1].at("time") >= 600);
}

TEST_CASE("tubes that live between two samples count for the server") {
  Day day;
  day.sample();
  for (int i = 0; i < 30; ++i) {
    day.run(
        fmt::format("watch t{0}\r\nput-in-tube t{0} 0 0 100 1\r\na\r\nreserve\r\n"
                    "delete {1}\r\nignore t{0}\r\n",
                    i, i + 1));
  }
  day.pass(5s);
  const auto server = day.server();
  REQUIRE(server.size() == 1);
  CHECK(server[0].at("puts") == 30);
  CHECK(server[0].at("reserves") == 30);
  CHECK(server[0].at("deletes") == 30);
}

TEST_CASE("a queue that is replaced begins to count again") {
  Day day;
  day.sample();
  day.put("a", 9);
  day.pass(1min);
  day.service.replace_queue(day.service.now(), [](engine::Engine&) {});
  day.put("a", 2);
  day.pass(1min);
  CHECK(sum(day.server(), "puts") == 9);
  CHECK(sum(day.tube("a"), "puts") <= 11);
  day.put("a");
  day.pass(1min);
  CHECK(sum(day.server(), "puts") == 10);
}

TEST_CASE("the busiest 50 tubes have a history") {
  Day day;
  day.sample();
  for (int i = 0; i < 60; ++i) day.put(fmt::format("t{}", i), 2 + i / 10);
  day.pass(1min);
  for (int i = 20; i < 60; ++i) CHECK(day.has(fmt::format("t{}", i)));
  const auto count = [&day] {
    int tubes = day.has("default") ? 1 : 0;
    for (int i = 0; i < 60; ++i) tubes += day.has(fmt::format("t{}", i)) ? 1 : 0;
    return tubes;
  };
  CHECK(count() == 50);

  SUBCASE("a tube that becomes busier replaces the least busy one and its history") {
    day.put("t0", 40);
    day.pass(5s);
    CHECK(day.has("t0"));
    CHECK(count() == 50);
    day.pass(1min);
    CHECK(day.tube("t0").size() <= 2);
  }
  SUBCASE("tubes that are about equally busy do not take turns") {
    std::vector<std::string> had;
    for (int i = 0; i < 60; ++i) {
      if (day.has(fmt::format("t{}", i))) had.push_back(fmt::format("t{}", i));
    }
    for (int round = 0; round < 30; ++round) {
      for (int i = 0; i < 60; ++i) day.put(fmt::format("t{}", (7 * i + round) % 60), 3);
      day.pass(1min);
    }
    for (const std::string& tube : had) {
      if (tube >= "t2") CHECK(day.has(tube));
    }
    CHECK(count() == 50);
  }
  SUBCASE("what was busy long ago gives way") {
    for (int round = 0; round < 60; ++round) {
      for (int i = 0; i < 20; ++i) day.put(fmt::format("t{}", i), 1);
      day.pass(1min);
    }
    for (int i = 0; i < 20; ++i) CHECK(day.has(fmt::format("t{}", i)));
    CHECK(count() == 50);
  }
  SUBCASE("a tube that does not exist keeps its place for a day") {
    day.run("put-in-tube gone 0 0 100 1\r\na\r\n");
    day.put("gone", 60);
    day.pass(1min);
    CHECK(day.has("gone"));
    day.run("flush-tube gone\r\n");
    day.pass(1min);
    CHECK(day.tube("gone").back().at("ready") == 0);
    day.pass(23h, 1min);
    CHECK(day.has("gone"));
    day.pass(2h, 1min);
    CHECK_FALSE(day.has("gone"));
  }
}

TEST_CASE("a sample of ten thousand tubes is bounded work, and finds the busiest in a walk") {
  Day day;
  for (int i = 0; i < 10'000; ++i) day.put(fmt::format("t{}", i));
  day.sample();
  std::uint64_t samples = 0;
  for (; samples < 2 * 10'000 / DayHistory::kTubesPerSample + 2; ++samples) {
    if (samples == 0) day.put("t9000", 50);
    const std::uint64_t before = day.service.engine().entries_walked();
    day.suspend(5s);
    day.sample();
    CHECK(day.service.engine().entries_walked() - before <=
          DayHistory::kTubesPerSample + DayHistory::kMostTubes);
  }
  CHECK(day.has("t9000"));
  // Before the end of the first walk nothing is known of all tubes together.
  CHECK(sum(day.server(), "puts") == 0);
  day.put("t1");
  day.pass(5s);
  CHECK(sum(day.server(), "puts") == 1);
}

TEST_CASE("a role sees the tubes that it may use") {
  Day day;
  day.put("mail");
  day.put("web");
  day.sample();
  CHECK(day.history.to_json(nullptr).ends_with("],\"tubes\":[\"default\",\"mail\",\"web\"]}\n"));
  const Role role = commands::role_of_families("r", "i", {"ma*"});
  CHECK(day.history.to_json(&role).ends_with("],\"tubes\":[\"mail\"]}\n"));
}

// --- The clock

TEST_CASE("a step of the wall clock moves the points of this process") {
  for (const Duration by : {Duration(1h), Duration(-1h), Duration(90s), Duration(-90s)}) {
    CAPTURE(whole_seconds(by));
    Day day;
    day.sample();
    day.put("a");
    day.pass(10min);
    const auto before = day.server();
    day.wall += by;
    day.pass(10min);
    const auto after = day.server();
    // One minute may be split, or two may become one.
    CHECK(after.size() >= before.size() + 9);
    CHECK(after.size() <= before.size() + 11);
    for (std::size_t i = 1; i < after.size(); ++i)
      CHECK(after[i].at("time") - after[i - 1].at("time") <= 120);
    CHECK(after.back().at("time") == seconds(day.wall) / 60 * 60);
    CHECK(sum(after, "seconds") == 1200);
    CHECK(sum(after, "puts") == 1);
  }
}

TEST_CASE("a small step of the wall clock loses nothing") {
  for (const Duration by : {Duration(40s), Duration(-40s), Duration(-5s), Duration(5s)}) {
    Day day;
    day.sample();
    day.pass(10min);
    for (int i = 0; i < 5; ++i) {
      day.wall += by;
      day.put("a");
      day.pass(1min);
    }
    const auto rows = day.server();
    CHECK(sum(rows, "seconds") == 900);
    CHECK(sum(rows, "puts") == 5);
    for (std::size_t i = 1; i < rows.size(); ++i)
      CHECK(rows[i].at("time") > rows[i - 1].at("time"));
  }
}

TEST_CASE("the points of a file stay where they are when the clock is stepped") {
  Day day;
  day.sample();
  day.pass(10min);
  const auto kept = day.server();
  const std::string file = day.history.to_file(day.wall);
  SUBCASE("forward") {
    day.wall += 30min;
    day.history = {};
    REQUIRE(day.history.load(file, day.wall));
    day.sample();
    day.pass(5min);
    day.wall += 10min;
    day.pass(5min);
    const auto rows = day.server();
    for (std::size_t i = 0; i < kept.size(); ++i) CHECK(rows[i] == kept[i]);
    CHECK(sum(rows, "seconds") == 1200);
  }
  SUBCASE("back, over the points of the file") {
    day.history = {};
    REQUIRE(day.history.load(file, day.wall));
    day.sample();
    day.pass(5min);
    day.wall -= 8min;
    day.pass(1min);
    const auto rows = day.server();
    CHECK(rows.back().at("time") == seconds(day.wall) / 60 * 60);
    for (std::size_t i = 1; i < rows.size(); ++i)
      CHECK(rows[i].at("time") > rows[i - 1].at("time"));
  }
}

// --- The file

// A history of a few minutes of two tubes.
Day& filled() {
  static Day* const made = [] {
    auto* day = new Day;
    day->put("mail.in/+", 3);
    day->sample();
    day->put("mail.in/+", 200);
    day->run("watch mail.in/+\r\nreserve\r\ndelete 1\r\n");
    day->pass(3min);
    day->suspend(1h);
    day->pass(2min);
    return day;
  }();
  return *made;
}

// Fixes the length and the checksum.
std::string with_sums(std::string file) {
  const auto put = [&file](std::size_t at, std::uint32_t number) {
    for (unsigned i = 0; i < 4; ++i) file[at + i] = static_cast<char>(number >> (8 * i));
  };
  put(12, static_cast<std::uint32_t>(file.size() - 20));
  put(file.size() - 4, crc32c(0, std::string_view(file).substr(0, file.size() - 4)));
  return file;
}

TEST_CASE("a history that is written and read is the same") {
  const Day& day = filled();
  const std::string file = day.history.to_file(day.wall);
  CHECK(with_sums(file) == file);
  DayHistory read;
  REQUIRE(read.load(file, day.wall));
  CHECK(read.to_json(nullptr) == day.history.to_json(nullptr));
  CHECK(read.tube_json("mail.in/+", 1440) == day.history.tube_json("mail.in/+", 1440));
  CHECK(read.to_file(day.wall) == file);
  DayHistory empty;
  REQUIRE(empty.load(DayHistory().to_file(day.wall), day.wall));
  CHECK(rows_of(empty.to_json(nullptr)).empty());
}

TEST_CASE("a server that starts again continues the history, with a gap") {
  Day day;
  day.put("a", 3);
  day.sample();
  day.pass(10min + 20s);
  const auto before = day.server();
  const std::string file = day.history.to_file(day.wall);
  SUBCASE("in the same minute") {
    day.history = {};
    REQUIRE(day.history.load(file, day.wall + 10s));
    day.suspend(10s);
    day.sample();
    day.put("a");
    day.pass(10s);
    const auto after = day.server();
    REQUIRE(after.size() == before.size());
    CHECK(after.back().at("seconds") == before.back().at("seconds") + 10);
    CHECK(after.back().at("puts") == 1);
    CHECK(day.tube("a").back().at("puts") == 1);
  }
  SUBCASE("an hour later, on another machine whose clock began again") {
    day.wall += 1h;
    day.steady = 1min;
    day.history = {};
    REQUIRE(day.history.load(file, day.wall));
    day.sample();
    day.pass(1min);
    const auto after = day.server();
    CHECK(after.size() >= before.size() + 1);
    CHECK(after[before.size() - 1] == before.back());
    CHECK(after[before.size()].at("time") - before.back().at("time") >= 3600);
    CHECK(day.tube("a").size() == after.size());
  }
  SUBCASE("more than a day later") {
    day.wall += 25h;
    day.history = {};
    REQUIRE(day.history.load(file, day.wall));
    CHECK(day.server().empty());
  }
}

TEST_CASE(
    "a history from the future is refused, and one from a clock that was a little ahead is not") {
  const Day& day = filled();
  const std::string file = day.history.to_file(day.wall);
  DayHistory read;
  CHECK(read.load(file, day.wall - 50s));
  const auto refused = read.load(file, day.wall - 2min);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "it is from the future: the clock was set back");
  CHECK_FALSE(read.load(file, Duration()));
  // Its points are from the future, although it does not say so itself.
  const std::string lying = day.history.to_file(day.wall - 3h);
  CHECK_FALSE(read.load(lying, day.wall - 3h));
}

TEST_CASE("a history of another version is refused, and one that is another file") {
  const Day& day = filled();
  std::string file = day.history.to_file(day.wall);
  file[8] = 2;
  DayHistory read;
  const auto other = read.load(with_sums(file), day.wall);
  REQUIRE_FALSE(other);
  CHECK(other.error().message == "its version is 2, and this program knows 1");
  file[8] = 1;
  file[0] = 'T';
  CHECK_FALSE(read.load(with_sums(file), day.wall));
  CHECK_FALSE(read.load("", day.wall));
  CHECK_FALSE(read.load(file + '\0', day.wall));
}

TEST_CASE("a history that is cut at any byte is refused") {
  const Day& day = filled();
  const std::string file = day.history.to_file(day.wall);
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
    CAPTURE(bytes);
    DayHistory read;
    const std::string cut = file.substr(0, bytes);
    CHECK_FALSE(read.load(cut, day.wall));
    // With a length and a checksum that fit, the contents decide.
    if (bytes >= 20) CHECK_FALSE(read.load(with_sums(cut), day.wall));
  }
}

TEST_CASE("a history with any flipped bit is refused") {
  const Day& day = filled();
  const std::string file = day.history.to_file(day.wall);
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      CAPTURE(at);
      CAPTURE(bit);
      std::string flipped = file;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      DayHistory read;
      CHECK_FALSE(read.load(flipped, day.wall));
    }
  }
}

TEST_CASE("contents of any kind with a right checksum are refused, or are a history") {
  const Day& day = filled();
  const std::string file = day.history.to_file(day.wall);
  std::size_t taken = 0;
  for (std::size_t at = 16; at < file.size() - 4; ++at) {
    for (std::size_t byte = at % 3; byte < 256; byte += 3 * kOneIn) {
      std::string changed = file;
      changed[at] = static_cast<char>(byte);
      DayHistory read;
      if (!read.load(with_sums(changed), day.wall)) continue;
      ++taken;
      // An accepted file can be shown, written, and read again.
      if (byte % 16 != 0) continue;
      CHECK(is_json(read.to_json(nullptr)));
      DayHistory again;
      CHECK(again.load(read.to_file(day.wall), day.wall));
      CHECK(again.to_json(nullptr) == read.to_json(nullptr));
    }
  }
  CHECK(taken > 0);
}

TEST_CASE("fifty tubes and a day take at most 3.2 MB, and their file at most 4 MiB") {
  Day day;
  for (int i = 0; i < 60; ++i) day.put(fmt::format("t{}", i), 1 + i % 2);
  day.sample();
  day.pass(25h, 1min);
  const std::string file = day.history.to_file(day.wall);
  MESSAGE("bytes of memory: ", day.history.memory_bytes(), ", of the file: ", file.size());
  CHECK(day.history.memory_bytes() <= 3'200'000);
  CHECK(file.size() <= DayHistory::kMostFileBytes);
  CHECK(day.server().size() == 1440);
  CHECK(day.tube("t59").size() == 1440);
  DayHistory read;
  REQUIRE(read.load(file, day.wall));
  CHECK(read.to_file(day.wall) == file);
  CHECK(read.memory_bytes() <= 3'200'000);
}

}  // namespace
}  // namespace tubed::api
