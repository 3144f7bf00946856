#include "serving/deadline_timers.h"

#include <doctest/doctest.h>

#include "tests/loop/loopback.h"

namespace tubed::server_test {

using namespace std::chrono_literals;
using loop_test::run_ticks;
using loop_test::run_until;
using os::monotonic_now;
using serving::DeadlineTimer;

namespace {

struct TestTimer {
  loop::Loop loop;
  int expirations = 0;
  DeadlineTimer timer{loop, [this] { ++expirations; }};

  bool expires(int times) {
    return run_until(loop, [&] { return expirations == times; });
  }
  bool is_armed() { return uv_loop_alive(loop.uv()) != 0; }
  // Until the timer expires.
  int milliseconds_left() { return uv_backend_timeout(loop.uv()); }
};

}  // namespace

TEST_CASE("a timer expires at its deadline and can be armed again") {
  TestTimer test;
  for (int times = 1; times <= 3; ++times) {
    const Time now = monotonic_now();
    const std::uint64_t of_loop = uv_now(test.loop.uv());  // in ms; it may be behind
    test.timer.arm(now + 5ms, now);
    CHECK(test.milliseconds_left() <= 6);
    REQUIRE(test.expires(times));
    CHECK(uv_now(test.loop.uv()) - of_loop >= 5);
  }
}

TEST_CASE("an earlier deadline replaces a later one") {
  TestTimer test;
  const Time now = monotonic_now();
  test.timer.arm(now + 1h, now);
  test.timer.arm(now + 5ms, now);
  CHECK(test.expires(1));
}

TEST_CASE("a later deadline leaves the timer as it is") {
  TestTimer test;
  const Time now = monotonic_now();
  test.timer.arm(now + 5ms, now);
  test.timer.arm(now + 1h, now);
  test.timer.arm(kNever, now);
  CHECK(test.expires(1));
  CHECK_FALSE(test.is_armed());
  // The timer may have expired early, without effect; a later deadline applies again.
  const Time later = monotonic_now();
  test.timer.arm(later + 5ms, later);
  CHECK(test.expires(2));
}

TEST_CASE("a deadline of kNever does not expire") {
  TestTimer test;
  test.timer.arm(kNever, monotonic_now());
  CHECK_FALSE(test.is_armed());
  run_ticks(test.loop);
  CHECK(test.expirations == 0);
}

TEST_CASE("a deadline in the past expires at once, however old it is") {
  TestTimer test;
  const Time now = monotonic_now();
  test.timer.arm(now, now);
  CHECK(test.expires(1));
  test.timer.arm(now - 1h, now);
  CHECK(test.expires(2));
  test.timer.arm(Time::min(), now);
  CHECK(test.expires(3));
  test.timer.arm(Time::min(), now);
  CHECK(test.expires(4));
}

}  // namespace tubed::server_test
