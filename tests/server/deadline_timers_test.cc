#include "server/deadline_timers.h"

#include <doctest/doctest.h>

#include "tests/loop/loopback.h"

namespace tubed::server_test {

using namespace std::chrono_literals;
using loop_test::run_until;
using os::monotonic_now;
using server::DeadlineTimer;

namespace {

struct Alarm {
  loop::Loop loop;
  int rung = 0;
  DeadlineTimer timer{loop, [this] { ++rung; }};

  bool rings(int times) {
    return run_until(loop, [&] { return rung == times; });
  }
  void turn_for(Duration duration) {
    const Time begin = monotonic_now();
    while (monotonic_now() - begin < duration) loop_test::turn(loop);
  }
};

}  // namespace

TEST_CASE("rings at its deadline and can be armed again") {
  Alarm alarm;
  for (int times = 1; times <= 3; ++times) {
    const Time now = monotonic_now();
    alarm.timer.arm(now + 5ms, now);
    REQUIRE(alarm.rings(times));
    CHECK(monotonic_now() - now >= 3ms);
    CHECK(monotonic_now() - now < 2s);
  }
}

TEST_CASE("an earlier deadline replaces a later one") {
  Alarm alarm;
  const Time now = monotonic_now();
  alarm.timer.arm(now + 1h, now);
  alarm.timer.arm(now + 5ms, now);
  CHECK(alarm.rings(1));
}

TEST_CASE("a later deadline leaves the timer as it is") {
  Alarm alarm;
  const Time now = monotonic_now();
  alarm.timer.arm(now + 5ms, now);
  alarm.timer.arm(now + 1h, now);
  alarm.timer.arm(kNever, now);
  CHECK(alarm.rings(1));
  alarm.turn_for(10ms);
  CHECK(alarm.rung == 1);
  // It has rung in vain perhaps; now the later one counts again.
  const Time later = monotonic_now();
  alarm.timer.arm(later + 5ms, later);
  CHECK(alarm.rings(2));
}

TEST_CASE("never is never") {
  Alarm alarm;
  alarm.timer.arm(kNever, monotonic_now());
  alarm.turn_for(5ms);
  CHECK(alarm.rung == 0);
}

TEST_CASE("what is over rings at once, however long it is over") {
  Alarm alarm;
  const Time now = monotonic_now();
  alarm.timer.arm(now, now);
  CHECK(alarm.rings(1));
  alarm.timer.arm(now - 1h, now);
  CHECK(alarm.rings(2));
  alarm.timer.arm(Time::min(), now);
  CHECK(alarm.rings(3));
  alarm.timer.arm(Time::min(), now);
  CHECK(alarm.rings(4));
}

}  // namespace tubed::server_test
