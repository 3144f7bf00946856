// The queries of stats, stats-tube and stats-job.
#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

TEST_CASE("urgent counts ready jobs of a priority below 1024 only") {
  World world;
  const SessionId session = world.open("a");
  const JobId urgent = world.put(session, {.priority = 1023});
  world.put(session, {.priority = 1024});
  world.put(session, {.priority = 0, .delay = 5});
  world.put_and_bury(session, {.priority = 0});
  CHECK(world.engine.info().jobs.urgent == 1);
  CHECK(world.tube("a").jobs.urgent == 1);
  CHECK(world.tube("default").jobs.urgent == 0);
  world.engine.reserve_job(session, world.now, urgent);
  CHECK(world.engine.info().jobs.urgent == 0);
  world.release(session, urgent, 1024);
  CHECK(world.engine.info().jobs.urgent == 0);
  world.kick(session, 1);
  CHECK(world.engine.info().jobs.urgent == 1);
  world.pass(5s);
  CHECK(world.tube("a").jobs.urgent == 2);
}

TEST_CASE("info counts jobs by state, sessions by what they ever did, tubes and memory") {
  World world;
  const SessionId producer = world.open("a");
  const SessionId worker = world.open("b");
  world.engine.mark_producer(producer);
  world.engine.mark_producer(producer);
  world.put(producer, {.body = "12345"});
  world.put(producer, {.delay = 5});
  world.put_and_bury(producer);
  world.put_and_hold(producer);
  world.reserve(worker);
  const EngineInfo info = world.engine.info();
  CHECK(info.jobs ==
        StateCounts{.urgent = 1, .ready = 1, .reserved = 1, .delayed = 1, .buried = 1});
  CHECK(info.total_jobs == 4);
  CHECK(info.tubes == 3);
  CHECK(info.sessions == 2);
  CHECK(info.producers == 1);
  CHECK(info.workers == 2);
  CHECK(info.waiting == 1);
  CHECK(info.watches == 2);
  CHECK(info.memory_bytes == 3 * JobMemory::cost_of(0) + JobMemory::cost_of(5));
  world.close(producer);
  world.close(worker);
  const EngineInfo after = world.engine.info();
  CHECK(after.sessions + after.producers + after.workers + after.waiting + after.watches == 0);
  CHECK(after.total_jobs == 4);
}

TEST_CASE("a reserve makes a worker, a reserve_job only if it gets its job") {
  World world;
  const SessionId holder = world.open();
  const SessionId other = world.open();
  const JobId job = world.put(holder);
  CHECK(world.engine.info().workers == 0);
  CHECK(world.engine.reserve_job(holder, world.now, job));
  CHECK(world.engine.info().workers == 1);
  CHECK_FALSE(world.engine.reserve_job(other, world.now, job));
  CHECK(world.engine.info().workers == 1);
  world.reserve(other, 0s);
  CHECK(world.engine.info().workers == 2);
  CHECK(world.engine.holds_jobs(holder));
  CHECK_FALSE(world.engine.holds_jobs(other));
}

TEST_CASE("tube_info has a tube's jobs, parties and counters") {
  World world;
  const SessionId producer = world.open("a");
  const SessionId worker = world.open();
  world.engine.watch(worker, world.now, "a");
  world.put(producer, {.delay = 9});
  world.put_and_bury(producer);
  world.remove(producer, world.put(producer));
  world.reserve(worker);
  world.pause("a", 10);
  world.pass(4s);
  const TubeInfo info = world.tube("a");
  CHECK(info.name == "a");
  CHECK(info.jobs == StateCounts{.delayed = 1, .buried = 1});
  CHECK(info.total_jobs == 3);
  CHECK(info.using_count == 1);
  CHECK(info.watching_count == 2);
  CHECK(info.waiting_count == 1);
  CHECK(info.delete_count == 1);
  CHECK(info.pause_count == 1);
  CHECK(info.pause == Seconds{10});
  CHECK(info.pause_left == 6s);
  CHECK_FALSE(world.engine.queries().tube_info(world.now, "b"));
}

TEST_CASE("tube_info counts reservations, timeouts and burials since the tube was created") {
  World world;
  const SessionId session = world.open("a");
  world.put_and_bury(session);
  const JobId late = world.put(session, {.ttr = 1});
  CHECK(world.take(session) == late);
  world.pass(1s);
  CHECK(world.take(session) == late);
  TubeInfo info = world.tube("a");
  CHECK(info.reserve_count == 3);
  CHECK(info.timeout_count == 1);
  CHECK(info.bury_count == 1);
  CHECK(world.tube("default").reserve_count == 0);
  // Neither a flush nor a move changes these counts.
  world.engine.tube_moves().move(session, world.now, 1, "b", std::nullopt, world.output);
  world.engine.flush(world.now, "a", world.output);
  info = world.tube("a");
  CHECK(info.reserve_count == 3);
  CHECK(info.timeout_count == 1);
  CHECK(info.bury_count == 1);
  CHECK(world.tube("b").bury_count == 0);
}

TEST_CASE("tube_info has the first job of each state, and how old it is") {
  for (const std::uint32_t records : {0U, 10U}) {
    World world({.tubes_with_metrics = records});
    const SessionId session = world.open("a");
    CHECK(world.tube("a").next_ready_id == 0);
    CHECK(world.tube("a").oldest_ready_age == 0s);
    CHECK(world.tube("a").next_delayed_age == 0s);
    CHECK(world.tube("a").first_buried_age == 0s);
    world.put_and_bury(session);
    world.pass(1s);
    world.put_and_bury(session);
    world.put(session, {.delay = 90});
    world.pass(2s);
    world.put(session, {.delay = 30});
    world.put(session, {.priority = 5});
    world.pass(4s);
    const JobId urgent = world.put(session, {.priority = 1});
    world.pass(8s);
    const TubeInfo info = world.tube("a");
    CHECK(info.next_ready_id == urgent);
    CHECK(info.next_delayed_age == 12s);
    CHECK(info.first_buried_age == 15s);
    // A record knows the oldest job. Without one it is the next job.
    CHECK(info.oldest_ready_age == (records > 0 ? 12s : 8s));
  }
}

TEST_CASE("tube_info has the times of a tube with a metrics record of its own") {
  World world({.tubes_with_metrics = 2});
  const SessionId session = world.open("a");
  const SessionId other = world.open("b");
  for (const SessionId id : {session, other}) {
    const JobId job = world.put(id);
    world.pass(5s);
    CHECK(world.take(id) == job);
    world.pass(30s);
    CHECK(world.remove(id, job));
  }
  const TubeInfo info = world.tube("a");
  CHECK(info.put_to_reserve->total() == 1);
  CHECK(info.put_to_reserve->sum_seconds() == 5);
  CHECK(info.reserve_to_delete->sum_seconds() == 30);
  CHECK(world.tube("b").put_to_reserve == nullptr);
  CHECK(world.tube("b").reserve_to_delete == nullptr);
}

TEST_CASE("pages of tubes have the order of the list, and show a moment each") {
  World world;
  const auto page = [&world](std::uint64_t from, std::uint32_t limit, std::uint64_t next) {
    std::string names;
    const std::uint64_t place = world.engine.queries().visit_tubes(
        world.now, from, limit,
        [&](const TubeInfo& tube) { names += std::string(tube.name) + " "; });
    CHECK(place == next);
    return names;
  };
  const SessionId session = world.open();
  for (const char* const name : {"a", "b", "c", "d"}) world.engine.watch(session, world.now, name);
  CHECK(page(0, 100, 0) == "default a b c d ");
  CHECK(page(0, 5, 0) == "default a b c d ");
  CHECK(page(0, 2, 2) == "default a ");
  CHECK(page(2, 2, 4) == "b c ");
  CHECK(page(4, 2, 0) == "d ");
  CHECK(page(5, 2, 0).empty());
  CHECK(page(UINT64_MAX, 2, 0).empty());
  // The last tube takes the place of a tube that is removed.
  world.engine.ignore(session, world.now, "a");
  CHECK(page(0, 100, 0) == "default d b c ");
  // Each entry counts as work.
  const std::uint64_t before = world.engine.entries_walked();
  page(1, 2, 3);
  CHECK(world.engine.entries_walked() == before + 2);
}

TEST_CASE("job_info has a job's state, times and counters") {
  World world;
  const SessionId session = world.open("a");
  const JobId job = world.put(session, {.priority = 3, .delay = 9, .ttr = 20});
  world.pass(4s);
  JobInfo info = world.job(job);
  CHECK(info.id == job);
  CHECK(info.tube == "a");
  CHECK(info.state == JobState::delayed);
  CHECK(info.priority == 3);
  CHECK(info.age == 4s);
  CHECK(info.delay == Seconds{9});
  CHECK(info.ttr == Seconds{20});
  CHECK(info.time_left == 5s);
  CHECK(info.counters == JobCounters{});
  world.pass(5s);
  CHECK(world.job(job).time_left == 0s);
  CHECK(world.take(session) == job);
  CHECK(world.job(job).time_left == 20s);
  world.release(session, job, 4, 6);
  info = world.job(job);
  CHECK(info.priority == 4);
  CHECK(info.delay == Seconds{6});
  CHECK(info.time_left == 6s);
  CHECK(info.age == 9s);
  CHECK(info.counters == JobCounters{.reserves = 1, .releases = 1});
  CHECK_FALSE(world.engine.queries().job_info(world.now, job + 1));
}

TEST_CASE("time left is never negative, though advance may come late") {
  World world;
  const SessionId session = world.open();
  const JobId held = world.put_and_hold(session, {.ttr = 1});
  const JobId delayed = world.put(session, {.delay = 1});
  world.pause("default", 1);
  world.now += 5s;
  CHECK(world.job(held).time_left == 0s);
  CHECK(world.job(delayed).time_left == 0s);
  CHECK(world.tube("default").pause_left == 0s);
}

TEST_CASE("ids start at 1 and go up by one a put") {
  World world;
  const SessionId session = world.open();
  CHECK(world.put(session) == 1);
  CHECK(world.remove(session, 1));
  CHECK(world.put(session) == 2);
}

}  // namespace tubed::engine
