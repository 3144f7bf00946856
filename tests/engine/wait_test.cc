// Waiting for the end of a job.
#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

TEST_CASE("a wait ends when any session deletes the job, for all that wait, by arrival") {
  World world;
  const SessionId first = world.open();
  const SessionId second = world.open();
  const SessionId worker = world.open();
  const JobId job = world.put(worker);
  const JobId other = world.put(worker);
  world.wait_for_job(second, job);
  world.wait_for_job(first, job);
  CHECK(world.engine.is_waiting(first));
  CHECK(world.engine.info().waiting_for_jobs == 2);
  CHECK(world.engine.info().waiting == 0);
  world.remove(worker, other);
  CHECK(world.notices().empty());
  world.remove(worker, job);
  CHECK(world.notices() == Lines{"1 deleted 1", "0 deleted 1"});
  CHECK_FALSE(world.engine.is_waiting(first));
  CHECK(world.engine.info().waiting_for_jobs == 0);
  world.wait_for_job(first, job);
  CHECK(world.notices() == Lines{"0 not found 1"});
}

TEST_CASE("a wait ends when the job is buried, and at once if it is buried already") {
  World world;
  const SessionId waiting = world.open();
  const SessionId worker = world.open();
  const JobId job = world.put_and_hold(worker);
  world.wait_for_job(waiting, job);
  world.bury(worker, job);
  CHECK(world.notices() == Lines{"0 buried 1"});
  world.wait_for_job(waiting, job, 0s);
  CHECK(world.notices() == Lines{"0 buried 1"});
  world.kick(worker, 1);
  world.wait_for_job(waiting, job, 0s);
  CHECK(world.notices() == Lines{"0 timed out for 1"});
}

TEST_CASE("a wait ends when the job is flushed in any way") {
  const auto after = [](auto flush) {
    World world;
    const SessionId worker = world.open("a");
    world.put(worker);
    world.put(worker, {.delay = 5});
    world.put_and_hold(worker);
    for (const JobId job : {3U, 2U, 1U}) world.wait_for_job(world.open(), job);
    flush(world, worker);
    world.engine.check_invariants();
    return world.notices();
  };
  const Lines all{"3 deleted 1", "2 deleted 2", "1 deleted 3"};
  CHECK(after([](World& world, SessionId) { world.engine.flush(world.now, "a", world.output); }) ==
        all);
  // A truncated job is gone for all but the delete of its holder.
  CHECK(after([](World& world, SessionId worker) {
          world.engine.truncate(world.now, "a", world.output);
          CHECK(world.remove(worker, 3));
        }) == all);
  CHECK(after([](World& world, SessionId) {
          Slices flush = world.engine.queries().slices("a", JobState::delayed, 10);
          world.engine.flush_slice(world.now, flush, world.output, world.output);
        }) == Lines{"2 deleted 2"});
  CHECK(after([](World& world, SessionId) {
          world.engine.flush(world.now, "default", world.output);
        }).empty());
  CHECK(after([](World& world, SessionId) {
          world.engine.remove_held(world.now, 3, world.output);
        }) == Lines{"1 deleted 3"});
}

TEST_CASE("a wait continues while the job lives") {
  World world;
  const SessionId waiting = world.open();
  const SessionId worker = world.open();
  const JobId job = world.put_and_hold(worker, {.ttr = 5});
  world.wait_for_job(waiting, job, 100s);
  world.pass(5s);
  world.engine.tube_moves().move(worker, world.now, job, "b", std::nullopt, world.output);
  world.engine.reserve_job(worker, world.now, job);
  world.release(worker, job, 0, 5);
  world.engine.kick_job(world.now, job, {}, world.output);
  world.engine.reserve_job(worker, world.now, job);
  world.close(worker);
  CHECK(world.notices().empty());
  world.pass(95s - 1ns);
  CHECK(world.notices().empty());
  world.pass(1ns);
  CHECK(world.notices() == Lines{"0 timed out for 1"});
}

TEST_CASE("a wait for a job is no reserve: it gets no job, and no warning of a TTR") {
  World world;
  const SessionId session = world.open();
  const JobId held = world.put_and_hold(session, {.ttr = 2});
  world.wait_for_job(session, held, 10s);
  world.put(session);
  world.pass(1500ms);
  CHECK(world.notices().empty());
  CHECK(world.tube("default").waiting_count == 0);
  world.pass(2s);
  CHECK(world.state(held) == JobState::ready);
  CHECK(world.engine.next_deadlines().ttr == Time() + 10s);
}

TEST_CASE("neither a cancelled wait nor the wait of a closed session gets a notice") {
  World world;
  const SessionId first = world.open();
  const SessionId second = world.open();
  const SessionId worker = world.open();
  const JobId job = world.put(worker);
  world.wait_for_job(first, job);
  world.wait_for_job(second, job);
  world.engine.cancel_wait(first);
  world.close(second);
  CHECK(world.engine.info().waiting_for_jobs == 0);
  world.remove(worker, job);
  CHECK(world.notices().empty());
  // The session can wait again.
  world.wait_for_job(first, world.put(worker), 1s);
  world.pass(1s);
  CHECK(world.notices() == Lines{"0 timed out for 2"});
}

}  // namespace tubed::engine
