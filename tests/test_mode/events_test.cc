#include "test_mode/events.h"

#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace tubed::test_mode {

namespace {

std::vector<std::pair<std::uint64_t, std::string>> list(const EventLog& log, std::uint64_t from,
                                                        std::uint64_t limit) {
  std::vector<std::pair<std::uint64_t, std::string>> all;
  log.visit(from, limit,
            [&](std::uint64_t number, const std::string& text) { all.emplace_back(number, text); });
  return all;
}

}  // namespace

TEST_CASE("events are numbered from 1 and counted by word") {
  EventLog log;
  log.add(Event::put, "1 mails");
  log.add(Event::put, "2 mails");
  log.add(Event::erase, "1");
  CHECK(log.count(Event::put) == 2);
  CHECK(log.count(Event::erase) == 1);
  CHECK(log.count(Event::timed_out) == 0);
  CHECK(list(log, 1, 10).size() == 3);
  CHECK(list(log, 3, 10).front() == std::pair<std::uint64_t, std::string>{3, "delete 1"});
  CHECK(list(log, 2, 1).front() == std::pair<std::uint64_t, std::string>{2, "put 2 mails"});
  CHECK(list(log, 2, 1).size() == 1);
  CHECK(list(log, 4, 10).empty());
  CHECK(list(log, UINT64_MAX, UINT64_MAX).empty());
  log.clear();
  CHECK(log.count(Event::put) == 0);
  CHECK(list(log, 0, 10).empty());
}

TEST_CASE("the last 10,000 events are kept, and all are counted") {
  EventLog log;
  for (int i = 1; i <= 10'005; ++i) log.add(Event::touch, std::to_string(i));
  const auto kept = list(log, 1, UINT64_MAX);
  CHECK(kept.size() == EventLog::kKept);
  CHECK(kept.front() == std::pair<std::uint64_t, std::string>{6, "touch 6"});
  CHECK(kept.back().first == 10'005);
  CHECK(log.count(Event::touch) == 10'005);
}

TEST_CASE("every event has a word, and no other word names one") {
  for (std::size_t i = 0; i < kEventTexts.size(); ++i) {
    CHECK(event_named(kEventTexts[i].word) == static_cast<Event>(i));
  }
  CHECK_FALSE(event_named("erase"));
  CHECK_FALSE(event_named(""));
}

}  // namespace tubed::test_mode
