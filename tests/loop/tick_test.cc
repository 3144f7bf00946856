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

// What happens in the turns of a loop, one letter each.
struct Beat {
  Loop loop;
  std::string heard;
  Timer timer{loop, [this] { heard += 't'; }};
  Tick turn{loop, [this] { heard += 'e'; }, [this] { heard += 'l'; }};

  std::string turns(int count) {
    heard.clear();
    loop_test::turn(loop, count);
    return heard;
  }
};

}  // namespace

TEST_CASE("a turn ends before the loop waits and again after events") {
  Beat beat;
  CHECK(beat.turns(1) == "ee");
  CHECK(beat.turns(2) == "eeee");
}

TEST_CASE("left-over work is done once a turn, before its end, for as long as it is asked for") {
  Beat beat;
  beat.turn.set_deferred_work(true);
  CHECK(beat.turns(3) == "leeleelee");
  beat.turn.set_deferred_work(true);
  CHECK(beat.turns(1) == "lee");
  beat.turn.set_deferred_work(false);
  CHECK(beat.turns(2) == "eeee");
  beat.turn.set_deferred_work(true);
  CHECK(beat.turns(1) == "lee");
}

TEST_CASE("what a timer does is followed by the end of the turn before the loop waits") {
  Beat beat;
  beat.timer.arm(0ns);
  CHECK(beat.turns(1) == "tee");
}

TEST_CASE("the loop waits without left-over work, and does not with it") {
  Beat beat;
  beat.timer.arm(20ms);
  uv_run(beat.loop.uv(), UV_RUN_ONCE);  // waits for the timer
  CHECK(beat.heard.find('t') != std::string::npos);
  beat.timer.arm(1h);
  beat.turn.set_deferred_work(true);
  beat.heard.clear();
  uv_run(beat.loop.uv(), UV_RUN_ONCE);
  CHECK(beat.heard == "lee");
}

}  // namespace tubed::loop_test
