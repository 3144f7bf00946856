// The loop of the simulation, used through src/loop: an iteration has the order of libuv.
#include "tests/simulation/uv.h"

#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <uv.h>

#include "loop/clock_watch.h"
#include "loop/idle_call.h"
#include "loop/loop.h"
#include "loop/signal.h"
#include "loop/tick.h"
#include "loop/timer.h"
#include "loop/wakeup.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/net.h"
#include "tests/simulation/world.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

struct Fixture {
  World world{3};
  Net net{world};
  loop::Loop loop;
};

}  // namespace

TEST_CASE("timers are called at their time, timers with equal times in the order of their starts") {
  Fixture fixture;
  Words called;
  std::vector<std::unique_ptr<loop::Timer>> timers;
  const Time begin = fixture.world.now();
  const auto add = [&](const std::string& name, Duration duration) {
    timers.push_back(std::make_unique<loop::Timer>(fixture.loop, [&, name, duration] {
      called.push_back(name);
      CHECK(fixture.world.now() >= begin + duration);
      CHECK(fixture.world.now() < begin + duration + 1ms);
    }));
    timers.back()->arm(duration);
  };
  add("late", 30ms);
  add("first", 10ms);
  add("second", 10ms);
  add("soon", 2ms);
  for (int i = 0; i < 100 && called.size() < 4; ++i) uv_run(fixture.loop.uv(), UV_RUN_ONCE);
  CHECK(called == Words{"soon", "first", "second", "late"});
}

TEST_CASE("an iteration has the phases of libuv") {
  Fixture fixture;
  Words called;
  uv_loop_t* const uv = fixture.loop.uv();
  static std::function<void(const char*)> note;
  note = [&](const char* name) { called.emplace_back(name); };
  uv_idle_t idle{};
  uv_prepare_t prepare{};
  uv_check_t check{};
  uv_timer_t timer{};
  uv_async_t async{};
  uv_async_init(uv, &async, [](uv_async_t*) { note("poll"); });
  uv_check_init(uv, &check);
  uv_check_start(&check, [](uv_check_t*) { note("check"); });
  uv_prepare_init(uv, &prepare);
  uv_prepare_start(&prepare, [](uv_prepare_t*) { note("prepare"); });
  uv_idle_init(uv, &idle);
  uv_idle_start(&idle, [](uv_idle_t*) { note("idle"); });
  uv_timer_init(uv, &timer);
  uv_timer_start(
      &timer, [](uv_timer_t*) { note("timer"); }, 0, 0);
  uv_async_send(&async);
  uv_run(uv, UV_RUN_NOWAIT);
  CHECK(called == Words{"timer", "idle", "prepare", "poll", "check"});
  called.clear();
  for (auto* handle :
       {reinterpret_cast<uv_handle_t*>(&idle), reinterpret_cast<uv_handle_t*>(&prepare),
        reinterpret_cast<uv_handle_t*>(&check), reinterpret_cast<uv_handle_t*>(&timer),
        reinterpret_cast<uv_handle_t*>(&async)}) {
    uv_close(handle, [](uv_handle_t*) { note("closed"); });
  }
  CHECK(called.empty());
  uv_run(uv, UV_RUN_NOWAIT);
  CHECK(called == Words(5, "closed"));
}

TEST_CASE("a call scheduled within an iteration is made in the next") {
  Fixture fixture;
  int calls = 0;
  loop::IdleCall call(fixture.loop, [&] {
    if (++calls < 3) call.arm();
  });
  call.arm();
  for (int i = 1; i <= 3; ++i) {
    fixture.loop.run_once();
    CHECK(calls == i);
  }
  fixture.loop.run_once();
  CHECK(calls == 3);
}

TEST_CASE("a signal and a wakeup end the wait of the loop") {
  Fixture fixture;
  Words called;
  const loop::Signal signal(fixture.loop, SIGUSR1, [&] { called.emplace_back("signal"); });
  loop::Wakeup wakeup(fixture.loop, [&] {
    called.emplace_back("wakeup");
    fixture.loop.stop();
  });
  fixture.world.after(5ms, [] { raise_signal(SIGUSR1); });
  fixture.world.after(5ms, [] { raise_signal(SIGUSR2); });  // has no handler
  fixture.world.after(9ms, [&] { wakeup.wake(); });
  fixture.loop.run();
  CHECK(called == Words{"signal", "wakeup"});
}

TEST_CASE("a timer that is armed after a wait of the loop counts from the end of the wait") {
  Fixture fixture;
  Time armed;
  loop::Timer timer(fixture.loop, [&] {
    CHECK(fixture.world.now() >= armed + 19ms);
    CHECK(fixture.world.now() <= armed + 21ms);
    fixture.loop.stop();
  });
  const loop::Signal signal(fixture.loop, SIGUSR1, [&] {
    armed = fixture.world.now();
    timer.arm(20ms);
  });
  fixture.world.after(15ms, [] { raise_signal(SIGUSR1); });
  fixture.loop.run();
  CHECK(armed != Time());
}

TEST_CASE("a tick ends after an operation of the disk") {
  Fixture fixture;
  Machine machine{fixture.world};
  bool is_done = false;
  loop::Tick tick(
      fixture.loop,
      [&] {
        if (is_done) fixture.loop.stop();
      },
      [] {});
  machine.disk().create("file", "", 4096, [&](const journal::Outcome&, journal::FileId) {
    is_done = true;
    // Without another event the tick would last until then.
    fixture.world.after(1h, [&] { fixture.world.fail("the tick has not ended"); });
  });
  machine.schedule();
  fixture.loop.run();
  CHECK(is_done);
  CHECK_FALSE(fixture.world.failed());
}

TEST_CASE("the process notices a step of the wall clock") {
  Fixture fixture;
  Machine machine{fixture.world};
  int steps = 0;
  const loop::ClockWatch watch(fixture.loop, [&] {
    ++steps;
    fixture.loop.stop();
  });
  const Time begin = fixture.world.now();
  fixture.world.after(5ms, [&] { machine.step_wall_clock(-1h); });
  const Duration offset = fixture.world.wall_offset();
  fixture.loop.run();
  CHECK(steps == 1);
  CHECK(fixture.world.now() >= begin + 5ms);
  CHECK(fixture.world.now() < begin + 6ms);
  CHECK(fixture.world.wall_offset() == offset - 1h);
  fixture.loop.run_once();
  CHECK(steps == 1);
}

TEST_CASE("no callback of a process that has ended is called") {
  Fixture fixture;
  int calls = 0;
  loop::Timer timer(fixture.loop, [&] { ++calls; });
  timer.arm(10ms);
  fixture.world.after(5ms, [] { end_loop(); });
  fixture.loop.run();
  CHECK(calls == 0);
  CHECK_FALSE(fixture.world.failed());
}

TEST_CASE("a loop without an end is a problem of the life") {
  Fixture fixture;
  const loop::Signal signal(fixture.loop, SIGUSR1, [] {});
  fixture.loop.run();
  CHECK(fixture.world.problem() == "nothing will ever happen");
}

}  // namespace tubed::simulation
