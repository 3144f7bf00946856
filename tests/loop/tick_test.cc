#include "loop/tick.h"

#include <doctest/doctest.h>

#include "loop/timer.h"
#include "tests/loop/loopback.h"

namespace tubed::loop_test {

using namespace std::chrono_literals;
using loop::Loop;
using loop::Tick;
using loop::Timer;

namespace {

// Records the callbacks of a loop: t: timer, e: end of a tick, d: deferred work.
struct Recorder {
  Loop loop;
  std::string events;
  Timer timer{loop, [this] { events += 't'; }};
  Tick tick{loop, [this] { events += 'e'; }, [this] { events += 'd'; }};

  std::string ticks(int count) {
    events.clear();
    loop_test::run_ticks(loop, count);
    return events;
  }
};

}  // namespace

TEST_CASE("a tick ends before the loop waits and again after events") {
  Recorder recorder;
  CHECK(recorder.ticks(1) == "ee");
  CHECK(recorder.ticks(2) == "eeee");
}

TEST_CASE("deferred work is done once per iteration while it is requested, before the tick ends") {
  Recorder recorder;
  recorder.tick.set_deferred_work(true);
  CHECK(recorder.ticks(3) == "deedeedee");
  recorder.tick.set_deferred_work(true);
  CHECK(recorder.ticks(1) == "dee");
  recorder.tick.set_deferred_work(false);
  CHECK(recorder.ticks(2) == "eeee");
  recorder.tick.set_deferred_work(true);
  CHECK(recorder.ticks(1) == "dee");
}

TEST_CASE("a tick ends after an expired timer, before the loop waits") {
  Recorder recorder;
  recorder.timer.arm(0ns);
  CHECK(recorder.ticks(1) == "tee");
}

TEST_CASE("the loop waits for events unless deferred work is requested") {
  Recorder recorder;
  recorder.timer.arm(20ms);
  uv_run(recorder.loop.uv(), UV_RUN_ONCE);  // waits for the timer
  CHECK(recorder.events.find('t') != std::string::npos);
  recorder.timer.arm(1h);
  recorder.tick.set_deferred_work(true);
  recorder.events.clear();
  uv_run(recorder.loop.uv(), UV_RUN_ONCE);
  CHECK(recorder.events == "dee");
}

}  // namespace tubed::loop_test
