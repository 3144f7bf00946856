#include "os/log.h"

#include <cstdlib>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tubed::os_test {

using namespace std::chrono_literals;
using os::Log;

namespace {

// A log whose lines are kept, at a wall clock that stands still.
struct Kept {
  std::vector<std::string> lines;
  bool deaf = false;
  Log log{[this](std::string_view line) {
            if (!deaf) lines.emplace_back(line);
            return !deaf;
          },
          [] { return Duration(1'000'000'000s + 7ms); }};

  std::string last() const { return lines.empty() ? "" : lines.back(); }
};

constexpr Time at(Duration since_start) {
  return Time(since_start);
}

}  // namespace

TEST_CASE("text is the time, the level, the event and its fields") {
  Kept kept;
  kept.log.configure(Log::Level::debug, Log::Format::text);
  kept.log.info("listening", {{"address", "127.0.0.1:11300"}, {"count", std::uint64_t{3}}});
  CHECK(kept.last() == "2001-09-09T01:46:40.007Z info listening address=127.0.0.1:11300 count=3\n");
  kept.log.error("gone");
  CHECK(kept.last() == "2001-09-09T01:46:40.007Z error gone\n");
}

TEST_CASE("a value of a text line is quoted when it would not be one word") {
  Kept kept;
  kept.log.configure(Log::Level::debug, Log::Format::text);
  const auto shown = [&](std::string_view value) {
    kept.log.info("e", {{"k", value}});
    return kept.last().substr(kept.last().find("k=") + 2);
  };
  CHECK(shown("plain-word_1.2+3/4:5,[6]@7%") == "plain-word_1.2+3/4:5,[6]@7%\n");
  CHECK(shown("") == "\"\"\n");
  CHECK(shown("two words") == "\"two words\"\n");
  CHECK(shown("a=b") == "\"a=b\"\n");
  CHECK(shown("say \"hi\" \\") == "\"say \\\"hi\\\" \\\\\"\n");
  CHECK(shown("a\r\nb\x1b[0m\x7f") == "\"a\\u000d\\u000ab\\u001b[0m\\u007f\"\n");
  CHECK(shown(std::string_view("\0", 1)) == "\"\\u0000\"\n");
}

TEST_CASE("JSON is one object a line, numbers without quotes") {
  Kept kept;
  kept.log.configure(Log::Level::debug, Log::Format::json);
  kept.log.warning("said \"so\"", {{"reason", "a\n\"b\""}, {"n", std::uint64_t{12}}, {"m", "12"}});
  CHECK(kept.last() ==
        R"({"time":"2001-09-09T01:46:40.007Z","level":"warning","event":"said \"so\"",)"
        R"("reason":"a\u000a\"b\"","n":12,"m":"12"})"
        "\n");
}

TEST_CASE("journald's lines begin with the priority and leave the time to it") {
  Kept kept;
  kept.log.configure(Log::Level::debug, Log::Format::journald);
  kept.log.error("a");
  kept.log.warning("a");
  kept.log.info("a", {{"k", "v w"}});
  kept.log.debug("a");
  CHECK(kept.lines == std::vector<std::string>{"<3>a\n", "<4>a\n", "<6>a k=\"v w\"\n", "<7>a\n"});
}

TEST_CASE("automatic asks whether stderr is the stream that the journal reads") {
  Kept kept;
  const auto first_character = [&] {
    kept.log.configure(Log::Level::info, Log::Format::automatic);
    kept.log.info("a");
    return kept.last().front();
  };
  struct stat status {};
  REQUIRE(::fstat(STDERR_FILENO, &status) == 0);
  const auto name = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  ::setenv("JOURNAL_STREAM", name.c_str(), 1);
  CHECK(first_character() == '<');
  ::setenv("JOURNAL_STREAM", "1:1", 1);
  CHECK(first_character() == '2');
  ::setenv("JOURNAL_STREAM", "", 1);
  CHECK(first_character() == '2');
  ::unsetenv("JOURNAL_STREAM");
  CHECK(first_character() == '2');
}

TEST_CASE("what is less important than the level is not written") {
  for (const auto level :
       {Log::Level::error, Log::Level::warning, Log::Level::info, Log::Level::debug}) {
    Kept kept;
    kept.log.configure(level, Log::Format::text);
    kept.log.error("a");
    kept.log.warning("a");
    kept.log.info("a");
    kept.log.debug("a");
    kept.log.limited(Log::Level::debug, at(0s), "b");
    const auto written = static_cast<std::size_t>(level) + 1;
    CHECK(kept.lines.size() == (level == Log::Level::debug ? written + 1 : written));
  }
}

TEST_CASE("an event that clients cause is written so many times a second, and then counted") {
  Kept kept;
  kept.log.configure(Log::Level::info, Log::Format::text);
  const Duration start = 100s;
  for (int i = 0; i < 1000; ++i) {
    kept.log.limited(Log::Level::info, at(start + i * 1ms - 1ms), "refused", {{"k", "v"}});
  }
  REQUIRE(kept.lines.size() == Log::kLimitedPerSecond);
  for (const auto& line : kept.lines) CHECK(line.find("suppressed") == std::string::npos);
  kept.log.limited(Log::Level::info, at(start + 1s), "refused", {{"k", "v"}});
  CHECK(kept.last() == "2001-09-09T01:46:40.007Z info refused k=v suppressed=995\n");
  kept.log.limited(Log::Level::info, at(start + 1s), "refused", {{"k", "v"}});
  CHECK(kept.last() == "2001-09-09T01:46:40.007Z info refused k=v\n");
}

TEST_CASE("each event has a limit of its own") {
  Kept kept;
  kept.log.configure(Log::Level::info, Log::Format::text);
  for (int i = 0; i < 100; ++i) kept.log.limited(Log::Level::info, at(5s), "one");
  for (int i = 0; i < 100; ++i) kept.log.limited(Log::Level::info, at(5s), "other");
  CHECK(kept.lines.size() == 2 * Log::kLimitedPerSecond);
  kept.log.info("one");  // what the server itself has to say is not limited
  CHECK(kept.lines.size() == 2 * Log::kLimitedPerSecond + 1);
}

TEST_CASE("what the level hides is not counted as left out") {
  Kept kept;
  kept.log.configure(Log::Level::info, Log::Format::text);
  for (int i = 0; i < 100; ++i) kept.log.limited(Log::Level::debug, at(5s), "event");
  kept.log.configure(Log::Level::debug, Log::Format::text);
  kept.log.limited(Log::Level::debug, at(7s), "event");
  CHECK(kept.last() == "2001-09-09T01:46:40.007Z debug event\n");
}

}  // namespace tubed::os_test
