#include "loop/pool_task.h"

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include <doctest/doctest.h>

#include "tests/loop/loopback.h"

namespace tubed::loop_test {

using loop::Loop;
using loop::PoolTask;

TEST_CASE("a task runs in another thread, and its result comes to the loop's thread") {
  Loop loop;
  PoolTask task(loop);
  for (const bool succeeds : {true, false}) {
    std::thread::id worked;
    std::string problem = "none";
    bool is_finished = false;
    task.run(
        [&worked, succeeds]() -> Result<void> {
          worked = std::this_thread::get_id();
          if (succeeds) return {};
          return Error{"full"};
        },
        [&](const Result<void>& result) {
          CHECK_FALSE(task.busy());
          is_finished = true;
          if (!result) problem = result.error().message;
        });
    CHECK(task.busy());
    REQUIRE(run_until(loop, [&] { return is_finished; }));
    CHECK(worked != std::this_thread::get_id());
    CHECK(problem == (succeeds ? "none" : "full"));
  }
}

TEST_CASE("a task that is destroyed while it works does not finish, and the loop waits for it") {
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_open = false;
    bool is_done = false;
  } gate;
  bool is_finished = false;
  {
    Loop loop;
    auto task = std::make_unique<PoolTask>(loop);
    task->run(
        [&gate]() -> Result<void> {
          std::unique_lock lock(gate.mutex);
          gate.changed.wait(lock, [&gate] { return gate.is_open; });
          gate.is_done = true;
          return {};
        },
        [&](const Result<void>&) { is_finished = true; });
    loop.run_once();
    task.reset();
    const std::lock_guard lock(gate.mutex);
    gate.is_open = true;
    gate.changed.notify_all();
  }
  CHECK(gate.is_done);
  CHECK_FALSE(is_finished);
}

}  // namespace tubed::loop_test
