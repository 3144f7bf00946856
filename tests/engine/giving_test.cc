// An engine that gives out no jobs, for a server that drains.
#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

namespace {

void set_giving(World& world, bool giving) {
  world.engine.set_giving(giving, world.now, world.output);
  world.engine.check_invariants();
}

}  // namespace

TEST_CASE("an engine that gives no jobs answers as if none were ready") {
  World world;
  const SessionId session = world.open();
  const JobId job = world.put(session);
  set_giving(world, false);
  world.reserve(session, 0s);
  CHECK(world.notices() == Lines{"0 timed out"});
  CHECK_FALSE(world.engine.reserve_ready(session, world.now));
  CHECK_FALSE(world.engine.queries().peek_next(session, world.now));
  CHECK_FALSE(world.engine.reserve_job(session, world.now, job));
  world.reserve(session, 5s);
  CHECK(world.notices().empty());
  world.pass(5s);
  CHECK(world.notices() == Lines{"0 timed out"});
  CHECK(world.engine.info().jobs.ready == 1);
}

TEST_CASE("no event gives a job to a session that waits while no jobs are given") {
  World world;
  const SessionId worker = world.open();
  const SessionId waiting = world.open();
  const JobId held = world.put_and_hold(worker);
  const JobId other = world.put_and_hold(worker, {.ttr = 2});
  set_giving(world, false);
  world.reserve(waiting);
  world.put(worker);                // a new job
  world.release(worker, held);      // a job that comes back
  world.put(worker, {.delay = 1});  // the end of a delay
  world.pass(1s);
  world.pass(1s);  // the end of a TTR
  CHECK(world.engine.info().jobs.ready == 4);
  CHECK(world.notices().empty());
  CHECK(world.engine.is_waiting(waiting));
  CHECK_FALSE(world.engine.queries().holder_of(other));
}

TEST_CASE("held jobs end as usual while no jobs are given") {
  World world;
  const SessionId worker = world.open();
  const JobId first = world.put_and_hold(worker);
  const JobId second = world.put_and_hold(worker);
  const JobId third = world.put_and_hold(worker);
  set_giving(world, false);
  CHECK(world.engine.touch(worker, world.now, first));
  CHECK(world.release(worker, first, 0, 7));
  CHECK(world.engine.bury(worker, world.now, second, 0, world.output));
  CHECK(world.engine.remove(worker, world.now, third, world.output));
  CHECK(world.engine.info().jobs.reserved == 0);
}

TEST_CASE("sessions that wait are served in order when jobs are given again") {
  World world;
  const SessionId producer = world.open();
  const SessionId first = world.open("a");
  const SessionId second = world.open("b");
  const SessionId third = world.open("a");
  set_giving(world, false);
  for (const SessionId session : {first, second, third}) world.reserve(session);
  for (const SessionId session : {second, first}) world.put(session);
  world.put(producer);
  CHECK(world.notices().empty());
  set_giving(world, true);
  CHECK(world.notices() == Lines{"1 reserved 2 ''", "2 reserved 1 ''"});
  CHECK(world.engine.is_waiting(third));
  CHECK(world.take(producer) == 3);
  set_giving(world, true);
  CHECK(world.notices().empty());
}

}  // namespace tubed::engine
