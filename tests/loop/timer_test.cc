#include "loop/timer.h"

#include <doctest/doctest.h>

#include "os/clock.h"
#include "tests/loop/loopback.h"

namespace tubed::loop_test {

using namespace std::chrono_literals;
using loop::Loop;
using loop::Timer;
using os::monotonic_now;

TEST_CASE("a timer expires once, at most a millisecond early") {
  Loop loop;
  int expirations = 0;
  Timer timer(loop, [&] { ++expirations; });
  for (const Duration delay : {Duration(1ms), Duration(5ms), Duration(20ms), Duration(1500us)}) {
    expirations = 0;
    uv_update_time(loop.uv());
    const Time begin = os::monotonic_now();
    timer.arm(delay);
    REQUIRE(run_until(loop, [&] { return expirations > 0; }));
    CHECK(os::monotonic_now() - begin >= delay - 1ms);
    run_ticks(loop, 10);
    CHECK(expirations == 1);
  }
}

TEST_CASE("a timer is early by at most the time since its tick began") {
  Loop loop;
  int expirations = 0;
  Timer timer(loop, [&] { ++expirations; });
  uv_update_time(loop.uv());
  const Time tick_begin = os::monotonic_now();
  while (os::monotonic_now() - tick_begin < 10ms) {
  }  // a long tick, in which the loop's clock does not advance
  timer.arm(15ms);
  REQUIRE(run_until(loop, [&] { return expirations > 0; }));
  CHECK(os::monotonic_now() - tick_begin >= 14ms);
}

TEST_CASE("arming a timer again replaces its deadline, and disarming ends it") {
  Loop loop;
  int expirations = 0;
  Timer timer(loop, [&] { ++expirations; });
  timer.arm(1h);
  timer.arm(0ns);
  CHECK(run_until(loop, [&] { return expirations == 1; }));
  timer.arm(0ns);
  timer.arm(1h);
  CHECK(uv_backend_timeout(loop.uv()) > 3'500'000);
  timer.arm(1ms);
  timer.disarm();
  CHECK(uv_loop_alive(loop.uv()) == 0);
  run_ticks(loop, 10);
  CHECK(expirations == 1);
}

TEST_CASE("a negative delay is zero, and a very long delay does not overflow") {
  Loop loop;
  int expirations = 0;
  Timer timer(loop, [&] { ++expirations; });
  timer.arm(-1h);
  CHECK(run_until(loop, [&] { return expirations == 1; }));
  timer.arm(Duration::max());
  run_ticks(loop, 100);
  CHECK(expirations == 1);
  timer.arm(Duration::min());
  CHECK(run_until(loop, [&] { return expirations == 2; }));
}

TEST_CASE("the monotonic clock never goes back") {
  Time last = os::monotonic_now();
  for (int i = 0; i < 10'000; ++i) {
    const Time now = os::monotonic_now();
    REQUIRE(now >= last);
    last = now;
  }
}

}  // namespace tubed::loop_test
