#include "test_mode/clock.h"

#include <doctest/doctest.h>

namespace tubed::test_mode {

using namespace std::chrono_literals;

namespace {
constexpr Time kBegin{1h};
}

TEST_CASE("a held clock moves only when it is set") {
  for (const ClockMode mode : {ClockMode::manual, ClockMode::automatic}) {
    Clock clock(mode, kBegin, kBegin);
    CHECK(clock.at(kBegin) == kBegin);
    CHECK(clock.at(kBegin + 5s) == kBegin);
    clock.set(kBegin + 60s, kBegin + 5s);
    CHECK(clock.at(kBegin + 9s) == kBegin + 60s);
    CHECK(clock.milliseconds(clock.at(kBegin + 9s)) == 60'000);
  }
}

TEST_CASE("a running clock moves with the monotonic clock, also after it was set") {
  Clock clock(ClockMode::real, kBegin, kBegin);
  CHECK(clock.at(kBegin + 5s) == kBegin + 5s);
  clock.set(kBegin + 60s, kBegin + 5s);
  CHECK(clock.at(kBegin + 7s) == kBegin + 62s);
}

TEST_CASE("a held clock reaches no deadline by itself, but for deadlines that it has passed") {
  const Clock clock(ClockMode::manual, kBegin, kBegin);
  CHECK(clock.tick_of(kBegin + 1s, kBegin + 9s) == kNever);
  CHECK(clock.tick_of(kNever, kBegin + 9s) == kNever);
  CHECK(clock.tick_of(kBegin, kBegin + 9s) == kBegin + 9s);
}

TEST_CASE("a running clock reaches a deadline at a time of the monotonic clock") {
  Clock clock(ClockMode::real, kBegin, kBegin);
  clock.set(kBegin + 60s, kBegin);
  CHECK(clock.tick_of(kBegin + 90s, kBegin) == kBegin + 30s);
  CHECK(clock.tick_of(kBegin + 10s, kBegin) == kBegin);
  CHECK(clock.tick_of(kNever, kBegin) == kNever);
}

}  // namespace tubed::test_mode
