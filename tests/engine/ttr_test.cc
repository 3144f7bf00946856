// Tests of reservations and of the end of their TTR.
#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

TEST_CASE("the TTR runs from the reservation") {
  World world;
  const SessionId worker = world.open();
  const JobId job = world.put(worker, {.ttr = 5});
  world.pass(100s);
  CHECK(world.take(worker) == job);
  CHECK(world.job(job).time_left == 5s);
  world.pass(4s);
  CHECK(world.job(job).time_left == 1s);
  CHECK(world.state(job) == JobState::reserved);
  world.pass(1s);
  CHECK(world.state(job) == JobState::ready);
}

TEST_CASE("the TTR passes at exactly its deadline and not a nanosecond earlier") {
  World world;
  const SessionId worker = world.open();
  const JobId job = world.put_and_hold(worker, {.ttr = 5});
  CHECK(world.engine.next_deadlines().ttr == world.now + 5s);
  world.pass(5s - 1ns);
  CHECK(world.state(job) == JobState::reserved);
  world.pass(1ns);
  CHECK(world.state(job) == JobState::ready);
}

TEST_CASE("a delay ends at exactly its deadline and not a nanosecond earlier") {
  World world;
  const SessionId worker = world.open();
  const JobId job = world.put(worker, {.delay = 5});
  CHECK(world.engine.next_deadlines().delay == world.now + 5s);
  world.pass(5s - 1ns);
  CHECK(world.state(job) == JobState::delayed);
  world.pass(1ns);
  CHECK(world.state(job) == JobState::ready);
  CHECK(world.job(job).delay == Seconds{5});
}

TEST_CASE("a touch restarts the whole TTR") {
  World world;
  const SessionId worker = world.open();
  const JobId job = world.put_and_hold(worker, {.ttr = 5});
  world.pass(4s);
  CHECK(world.engine.touch(worker, world.now, job));
  CHECK(world.job(job).time_left == 5s);
  world.pass(4s);
  CHECK(world.state(job) == JobState::reserved);
  world.pass(1s);
  CHECK(world.state(job) == JobState::ready);
}

TEST_CASE("only the holder can touch, release or bury a job") {
  World world;
  const SessionId holder = world.open();
  const SessionId other = world.open();
  const JobId job = world.put_and_hold(holder);
  CHECK_FALSE(world.engine.touch(other, world.now, job));
  CHECK_FALSE(world.release(other, job));
  CHECK_FALSE(world.bury(other, job));
  const JobId ready = world.put(holder);
  CHECK_FALSE(world.engine.touch(holder, world.now, ready));
  CHECK_FALSE(world.release(holder, ready));
  CHECK_FALSE(world.bury(holder, ready));
  CHECK_FALSE(world.release(holder, 99));
  CHECK(world.state(job) == JobState::reserved);
}

TEST_CASE("a TTR of 0 becomes 1") {
  World world;
  const SessionId worker = world.open();
  const JobId job = world.put_and_hold(worker, {.ttr = 0});
  CHECK(world.job(job).ttr == Seconds{1});
  world.pass(1s - 1ns);
  CHECK(world.state(job) == JobState::reserved);
  world.pass(1ns);
  CHECK(world.state(job) == JobState::ready);
}

TEST_CASE("a job whose TTR passes is ready at its old priority, and the timeout is counted") {
  World world;
  const SessionId worker = world.open();
  const JobId job = world.put(worker, {.priority = 3, .ttr = 1});
  world.put(worker, {.priority = 3});
  CHECK(world.take(worker) == job);
  world.pass(1s);
  CHECK(world.job(job).priority == 3);
  CHECK(world.job(job).counters == JobCounters{.reserves = 1, .timeouts = 1});
  CHECK(world.engine.info().timeouts == 1);
  CHECK_FALSE(world.engine.touch(worker, world.now, job));
  CHECK(world.take(worker) == job);
}

TEST_CASE("a job whose TTR passes goes to a session that waits") {
  World world;
  const SessionId holder = world.open();
  const SessionId other = world.open();
  world.put_and_hold(holder, {.ttr = 2});
  world.reserve(other);
  world.pass(2s);
  CHECK(world.notices() == Lines{"1 reserved 1 ''"});
}

TEST_CASE("jobs that time out at one moment do so in the order of their ids") {
  World world;
  const SessionId first = world.open();
  const SessionId second = world.open();
  for (int i = 0; i < 3; ++i) world.put(first, {.ttr = 1});
  world.engine.reserve_job(second, world.now, 1);
  world.engine.reserve_job(first, world.now, 2);
  world.engine.reserve_job(second, world.now, 3);
  world.facts();
  world.pass(1s);
  CHECK(world.facts() == Lines{"placed 1: ready 0 reserves=1 timeouts=1",
                               "placed 2: ready 0 reserves=1 timeouts=1",
                               "placed 3: ready 0 reserves=1 timeouts=1"});
}

TEST_CASE("a session that holds a job in its last second gets DEADLINE_SOON instead of waiting") {
  World world;
  const SessionId worker = world.open();
  world.put_and_hold(worker, {.ttr = 5});
  world.pass(4s - 1ns);
  world.reserve(worker, 0s);
  CHECK(world.notices() == Lines{"0 timed out"});
  world.pass(1ns);
  world.reserve(worker);
  CHECK(world.notices() == Lines{"0 deadline soon"});
  world.reserve(worker, 0s);
  CHECK(world.notices() == Lines{"0 deadline soon"});
  CHECK(world.engine.info().waiting == 0);
}

TEST_CASE("a waiting session gets DEADLINE_SOON when the last second of a held job begins") {
  World world;
  const SessionId worker = world.open();
  world.put_and_hold(worker, {.ttr = 5});
  world.reserve(worker, 100s);
  CHECK(world.engine.next_deadlines().ttr == world.now + 4s);
  world.pass(4s - 1ns);
  CHECK(world.notices().empty());
  world.pass(1ns);
  CHECK(world.notices() == Lines{"0 deadline soon"});
}

TEST_CASE("DEADLINE_SOON wins over a wait that ends at the same moment") {
  World world;
  const SessionId worker = world.open();
  world.put_and_hold(worker, {.ttr = 5});
  world.reserve(worker, 4s);
  world.pass(4s);
  CHECK(world.notices() == Lines{"0 deadline soon"});
}

TEST_CASE("a ready job is given all the same in the last second of another, with wait 0 too") {
  World world;
  const SessionId worker = world.open();
  world.put_and_hold(worker, {.ttr = 5});
  world.pass(4s);
  const JobId second = world.put(worker);
  const JobId third = world.put(worker);
  world.reserve(worker);
  world.reserve(worker, 0s);
  CHECK(world.notices() == Lines{"0 reserved 2 ''", "0 reserved 3 ''"});
  CHECK(world.state(second) == JobState::reserved);
  CHECK(world.state(third) == JobState::reserved);
}

TEST_CASE("a job that becomes ready as the last second begins is given to the waiting holder") {
  World world;
  const SessionId worker = world.open();
  world.put_and_hold(worker, {.ttr = 5});
  world.put(worker, {.delay = 4});
  world.reserve(worker);
  world.pass(4s);
  CHECK(world.notices() == Lines{"0 reserved 2 ''"});
}

TEST_CASE("a touch moves the last second away") {
  World world;
  const SessionId worker = world.open();
  const JobId job = world.put_and_hold(worker, {.ttr = 5});
  world.pass(4s);
  world.engine.touch(worker, world.now, job);
  world.reserve(worker, 2s);
  world.pass(2s);
  CHECK(world.notices() == Lines{"0 timed out"});
}

TEST_CASE("a closed session gives its jobs back at once, with their priorities and counters") {
  World world;
  const SessionId holder = world.open();
  const SessionId other = world.open();
  const JobId job = world.put_and_hold(holder, {.priority = 4});
  world.close(holder);
  CHECK(world.state(job) == JobState::ready);
  CHECK(world.job(job).priority == 4);
  CHECK(world.job(job).counters == JobCounters{.reserves = 1});
  CHECK(world.take(other) == job);
}

TEST_CASE("a closed session's jobs go to waiting sessions best job first") {
  World world;
  const SessionId holder = world.open();
  world.put_and_hold(holder, {.priority = 9});
  world.put_and_hold(holder, {.priority = 1});
  world.put_and_hold(holder, {.priority = 5});
  for (int i = 0; i < 2; ++i) world.reserve(world.open());
  world.close(holder);
  CHECK(world.notices() == Lines{"1 reserved 2 ''", "2 reserved 3 ''"});
}

// 1500 ms.
JobId put_short(World& world) {
  const JobTags tags{.ttr_short_by_ms = 500};
  REQUIRE(world.engine.memory().claim(tags_memory(tags)));
  return world.engine
      .put_with_tags(world.now, kDefaultTube, {.priority = 0, .delay = {}, .ttr = {2}, .body = {}},
                     tags, world.output)
      ->id;
}

TEST_CASE("a TTR with milliseconds ends exactly, and is shown in whole seconds") {
  World world;
  const JobId job = put_short(world);
  CHECK(world.facts() == Lines{"added 1 to default at 0s, ttr 2, no body: ready 0 less 500ms"});
  const SessionId worker = world.open();
  CHECK(world.take(worker) == job);
  CHECK(world.job(job).ttr == Seconds{2});
  CHECK(world.job(job).time_left == 1500ms);
  world.pass(1500ms - 1ns);
  CHECK(world.state(job) == JobState::reserved);
  world.pass(1ns);
  CHECK(world.state(job) == JobState::ready);
}

TEST_CASE("a replay keeps the milliseconds of a TTR, and its memory ends with the job") {
  World world;
  put_short(world);
  World again;
  again.restore(world);
  CHECK(again.engine.info().memory_bytes == world.engine.info().memory_bytes);
  const SessionId worker = again.open();
  CHECK(again.take(worker) == 1);
  CHECK(again.job(1).time_left == 1500ms);
  CHECK(again.remove(worker, 1));
  CHECK(again.engine.info().memory_bytes == 0);
}

TEST_CASE("reserve_job takes a ready, delayed or buried job") {
  World world;
  const SessionId worker = world.open("elsewhere");
  const SessionId producer = world.open("paused");
  world.pause("paused", 100);
  const JobId ready = world.put(producer, {.body = "one"});
  const JobId delayed = world.put(producer, {.delay = 9, .body = "two"});
  const JobId buried = world.put_and_bury(producer, {.body = "three"});
  CHECK(world.engine.reserve_job(worker, world.now, ready)->body.view() == "one");
  CHECK(world.engine.reserve_job(worker, world.now, delayed)->body.view() == "two");
  CHECK(world.engine.reserve_job(worker, world.now, buried)->id == buried);
  for (const JobId job : {ready, delayed, buried}) {
    CHECK(world.state(job) == JobState::reserved);
    CHECK(world.job(job).time_left == 60s);
    CHECK(world.release(worker, job));
  }
  CHECK(world.engine.info().workers == 1 + 1);
}

TEST_CASE("reserve_job refuses a job that a session holds, and an unknown job") {
  World world;
  const SessionId holder = world.open();
  const SessionId other = world.open();
  const JobId job = world.put_and_hold(holder);
  CHECK_FALSE(world.engine.reserve_job(other, world.now, job));
  CHECK_FALSE(world.engine.reserve_job(holder, world.now, job));
  CHECK_FALSE(world.engine.reserve_job(holder, world.now, job + 1));
  CHECK_FALSE(world.engine.reserve_job(holder, world.now, 0));
}

}  // namespace tubed::engine
