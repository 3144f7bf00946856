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

// A log that records its lines, with a wall clock that does not advance.
struct RecordedLog {
  std::vector<std::string> lines;
  bool fails = false;
  Log log{[this](std::string_view line) {
            if (!fails) lines.emplace_back(line);
            return !fails;
          },
          [] { return Duration(1'000'000'000s + 7ms); }};

  std::string last() const { return lines.empty() ? "" : lines.back(); }
};

constexpr Time at(Duration since_start) {
  return Time(since_start);
}

}  // namespace

TEST_CASE("a text line has the time, the level, the event and its fields") {
  RecordedLog recorded;
  recorded.log.configure(Log::Level::debug, Log::Format::text);
  recorded.log.info("listening", {{"address", "127.0.0.1:11300"}, {"count", std::uint64_t{3}}});
  CHECK(recorded.last() ==
        "2001-09-09T01:46:40.007Z info listening address=127.0.0.1:11300 count=3\n");
  recorded.log.error("gone");
  CHECK(recorded.last() == "2001-09-09T01:46:40.007Z error gone\n");
}

TEST_CASE("a value of a text line is quoted unless it is one word") {
  RecordedLog recorded;
  recorded.log.configure(Log::Level::debug, Log::Format::text);
  const auto shown = [&](std::string_view value) {
    recorded.log.info("e", {{"k", value}});
    return recorded.last().substr(recorded.last().find("k=") + 2);
  };
  CHECK(shown("plain-word_1.2+3/4:5,[6]@7%") == "plain-word_1.2+3/4:5,[6]@7%\n");
  CHECK(shown("") == "\"\"\n");
  CHECK(shown("two words") == "\"two words\"\n");
  CHECK(shown("a=b") == "\"a=b\"\n");
  CHECK(shown("say \"hi\" \\") == "\"say \\\"hi\\\" \\\\\"\n");
  CHECK(shown("a\r\nb\x1b[0m\x7f") == "\"a\\u000d\\u000ab\\u001b[0m\\u007f\"\n");
  CHECK(shown(std::string_view("\0", 1)) == "\"\\u0000\"\n");
}

TEST_CASE("a JSON line is one object, with numbers without quotes") {
  RecordedLog recorded;
  recorded.log.configure(Log::Level::debug, Log::Format::json);
  recorded.log.warning("said \"so\"",
                       {{"reason", "a\n\"b\""}, {"n", std::uint64_t{12}}, {"m", "12"}});
  CHECK(recorded.last() ==
        R"({"time":"2001-09-09T01:46:40.007Z","level":"warning","event":"said \"so\"",)"
        R"("reason":"a\u000a\"b\"","n":12,"m":"12"})"
        "\n");
}

TEST_CASE("a line for journald begins with the priority and has no time") {
  RecordedLog recorded;
  recorded.log.configure(Log::Level::debug, Log::Format::journald);
  recorded.log.error("a");
  recorded.log.warning("a");
  recorded.log.info("a", {{"k", "v w"}});
  recorded.log.debug("a");
  CHECK(recorded.lines ==
        std::vector<std::string>{"<3>a\n", "<4>a\n", "<6>a k=\"v w\"\n", "<7>a\n"});
}

TEST_CASE("the automatic format depends on whether journald reads stderr") {
  RecordedLog recorded;
  const auto first_character = [&] {
    recorded.log.configure(Log::Level::info, Log::Format::automatic);
    recorded.log.info("a");
    return recorded.last().front();
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

TEST_CASE("a line below the configured level is not written") {
  for (const auto level :
       {Log::Level::error, Log::Level::warning, Log::Level::info, Log::Level::debug}) {
    RecordedLog recorded;
    recorded.log.configure(level, Log::Format::text);
    recorded.log.error("a");
    recorded.log.warning("a");
    recorded.log.info("a");
    recorded.log.debug("a");
    recorded.log.limited(Log::Level::debug, at(0s), "b");
    const auto written = static_cast<std::size_t>(level) + 1;
    CHECK(recorded.lines.size() == (level == Log::Level::debug ? written + 1 : written));
  }
}

TEST_CASE("a limited event is written a few times per second, and the omitted lines are counted") {
  RecordedLog recorded;
  recorded.log.configure(Log::Level::info, Log::Format::text);
  const Duration start = 100s;
  for (int i = 0; i < 1000; ++i) {
    recorded.log.limited(Log::Level::info, at(start + i * 1ms - 1ms), "refused", {{"k", "v"}});
  }
  REQUIRE(recorded.lines.size() == Log::kLimitedPerSecond);
  for (const auto& line : recorded.lines) CHECK(line.find("suppressed") == std::string::npos);
  recorded.log.limited(Log::Level::info, at(start + 1s), "refused", {{"k", "v"}});
  CHECK(recorded.last() == "2001-09-09T01:46:40.007Z info refused k=v suppressed=995\n");
  recorded.log.limited(Log::Level::info, at(start + 1s), "refused", {{"k", "v"}});
  CHECK(recorded.last() == "2001-09-09T01:46:40.007Z info refused k=v\n");
}

TEST_CASE("each event has its own limit") {
  RecordedLog recorded;
  recorded.log.configure(Log::Level::info, Log::Format::text);
  for (int i = 0; i < 100; ++i) recorded.log.limited(Log::Level::info, at(5s), "one");
  for (int i = 0; i < 100; ++i) recorded.log.limited(Log::Level::info, at(5s), "other");
  CHECK(recorded.lines.size() == 2 * Log::kLimitedPerSecond);
  recorded.log.info("one");  // only limited() is limited
  CHECK(recorded.lines.size() == 2 * Log::kLimitedPerSecond + 1);
}

TEST_CASE("a line below the level is not counted as suppressed") {
  RecordedLog recorded;
  recorded.log.configure(Log::Level::info, Log::Format::text);
  for (int i = 0; i < 100; ++i) recorded.log.limited(Log::Level::debug, at(5s), "event");
  recorded.log.configure(Log::Level::debug, Log::Format::text);
  recorded.log.limited(Log::Level::debug, at(7s), "event");
  CHECK(recorded.last() == "2001-09-09T01:46:40.007Z debug event\n");
}

}  // namespace tubed::os_test
