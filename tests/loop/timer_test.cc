#include "loop/timer.h"

#include <doctest/doctest.h>

#include "os/clock.h"
#include "tests/loop/loopback.h"

namespace tubed::loop_test {

using namespace std::chrono_literals;
using loop::Loop;
using loop::Timer;
using os::monotonic_now;

TEST_CASE("a timer rings once, and no earlier than asked but for the loop's milliseconds") {
  Loop loop;
  int rung = 0;
  Timer timer(loop, [&] { ++rung; });
  for (const Duration delay : {Duration(1ms), Duration(5ms), Duration(20ms), Duration(1500us)}) {
    rung = 0;
    uv_update_time(loop.uv());
    const Time begin = os::monotonic_now();
    timer.arm(delay);
    REQUIRE(run_until(loop, [&] { return rung > 0; }));
    CHECK(os::monotonic_now() - begin >= delay - 1ms);
    turn(loop, 10);
    CHECK(rung == 1);
  }
}

TEST_CASE("a timer is early by the turn that armed it, and no more") {
  Loop loop;
  int rung = 0;
  Timer timer(loop, [&] { ++rung; });
  uv_update_time(loop.uv());
  const Time turn_begin = os::monotonic_now();
  while (os::monotonic_now() - turn_begin < 10ms) {
  }  // a long turn: the loop's clock stands still
  timer.arm(15ms);
  REQUIRE(run_until(loop, [&] { return rung > 0; }));
  CHECK(os::monotonic_now() - turn_begin >= 14ms);
}

TEST_CASE("arming again replaces, disarming ends it") {
  Loop loop;
  int rung = 0;
  Timer timer(loop, [&] { ++rung; });
  const auto turn_for = [&](Duration duration) {
    const Time begin = os::monotonic_now();
    while (os::monotonic_now() - begin < duration) turn(loop);
  };
  timer.arm(1h);
  timer.arm(0ns);
  CHECK(run_until(loop, [&] { return rung == 1; }));
  timer.arm(0ns);
  timer.arm(1h);
  turn_for(5ms);
  CHECK(rung == 1);
  timer.arm(1ms);
  timer.disarm();
  turn_for(5ms);
  CHECK(rung == 1);
}

TEST_CASE("the past is now, and the far future never comes by overflow") {
  Loop loop;
  int rung = 0;
  Timer timer(loop, [&] { ++rung; });
  timer.arm(-1h);
  CHECK(run_until(loop, [&] { return rung == 1; }));
  timer.arm(Duration::max());
  turn(loop, 100);
  CHECK(rung == 1);
  timer.arm(Duration::min());
  CHECK(run_until(loop, [&] { return rung == 2; }));
}

TEST_CASE("the clock never goes back") {
  Time last = os::monotonic_now();
  for (int i = 0; i < 10'000; ++i) {
    const Time now = os::monotonic_now();
    REQUIRE(now >= last);
    last = now;
  }
}

}  // namespace tubed::loop_test
