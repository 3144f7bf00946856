// The facts that each call emits, and their replay.
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

TEST_CASE("a put emits Added, with a delay too") {
  World world;
  world.pass(3s);
  const SessionId session = world.open("a");
  world.put(session, {.priority = 5, .ttr = 0, .body = "x"});
  world.put(session, {.delay = 7});
  CHECK(world.facts() == Lines{"added 1 to a at 3s, ttr 1, 'x': ready 5",
                               "added 2 to a at 3s, ttr 60, '': delayed 0 delay 7 until 10s"});
}

TEST_CASE("a release emits Placed, without a delay too") {
  World world;
  const SessionId session = world.open();
  const JobId job = world.put_and_hold(session);
  world.facts();
  world.release(session, job, 5);
  CHECK(world.facts() == Lines{"placed 1: ready 5 reserves=1 releases=1"});
  world.engine.reserve_job(session, world.now, job);
  world.release(session, job, 6, 7);
  CHECK(world.facts() == Lines{"placed 1: delayed 6 delay 7 until 7s reserves=2 releases=2"});
}

TEST_CASE("a bury emits Placed with its place among the buried") {
  World world;
  const SessionId session = world.open();
  const JobId first = world.put_and_hold(session);
  const JobId second = world.put_and_hold(session);
  world.facts();
  world.bury(session, second, 5);
  world.bury(session, first, 6);
  CHECK(world.facts() == Lines{"placed 2: buried 5 order 0 reserves=1 buries=1",
                               "placed 1: buried 6 order 1 reserves=1 buries=1"});
}

TEST_CASE("a kick emits Placed for each job it moves") {
  World world;
  const SessionId session = world.open();
  world.put_and_bury(session);
  world.put_and_bury(session);
  const JobId delayed = world.put(session, {.delay = 5});
  world.facts();
  world.kick(session, 5);
  CHECK(world.facts() == Lines{"placed 1: ready 0 reserves=1 buries=1 kicks=1",
                               "placed 2: ready 0 reserves=1 buries=1 kicks=1"});
  world.engine.kick_job(world.now, delayed, {}, world.output);
  CHECK(world.facts() == Lines{"placed 3: ready 0 delay 5 kicks=1"});
}

TEST_CASE("a timeout emits Placed") {
  World world;
  const SessionId session = world.open();
  world.put_and_hold(session, {.ttr = 1});
  world.facts();
  world.pass(1s);
  CHECK(world.facts() == Lines{"placed 1: ready 0 reserves=1 timeouts=1"});
}

TEST_CASE("a close emits Placed for each job made ready, also for a job that was buried before") {
  World world;
  const SessionId session = world.open();
  const JobId job = world.put_and_bury(session);
  world.engine.reserve_job(session, world.now, job);
  world.facts();
  world.close(session);
  CHECK(world.facts() == Lines{"placed 1: ready 0 reserves=2 buries=1"});
}

TEST_CASE("a delete emits Removed") {
  World world;
  const SessionId session = world.open();
  world.put(session);
  world.facts();
  world.remove(session, 1);
  CHECK(world.facts() == Lines{"removed 1"});
}

TEST_CASE("a pause emits Paused, and so does its end by a pause of 0, but not its end by time") {
  World world;
  world.open("a");
  world.pass(1s);
  world.pause("a", 10);
  CHECK(world.facts() == Lines{"paused a for 10 until 11s"});
  world.pause("a", 0);
  CHECK(world.facts() == Lines{"paused a for 0 until 1s"});
  world.pause("a", 10);
  world.facts();
  world.pass(10s);
  CHECK(world.facts().empty());
}

TEST_CASE("a paused tube stays without jobs and clients, and its pause with it") {
  World world;
  const SessionId session = world.open("a");
  const JobId job = world.put(session);
  world.pause("a", 10);
  world.close(session);
  const SessionId other = world.open();
  world.facts();
  world.remove(other, job);
  CHECK(world.facts() == Lines{"removed 1"});
  CHECK(world.tube("a").pause_left == 10s);
  world.pass(10s);
  CHECK(world.facts().empty());
  CHECK_FALSE(world.has_tube("a"));
}

TEST_CASE("a call that changes nothing durable emits no fact") {
  World world;
  const SessionId session = world.open();
  world.put(session);
  world.put(session, {.delay = 5});
  world.facts();
  world.reserve(session);
  world.engine.touch(session, world.now, 1);
  world.engine.reserve_job(session, world.now, 2);
  world.engine.queries().peek(1);
  world.engine.queries().peek_ready(session);
  world.engine.use(session, world.now, "a");
  world.engine.watch(session, world.now, "b");
  world.engine.ignore(session, world.now, "b");
  world.reserve(session, 1s);
  world.engine.cancel_wait(session);
  world.remove(session, 99);
  world.release(session, 99);
  world.kick(session, 5);
  world.pass(1s);
  CHECK(world.facts().empty());
}

TEST_CASE("the end of a delay emits no fact") {
  World world;
  world.put(world.open(), {.delay = 5});
  world.facts();
  world.pass(5s);
  CHECK(world.facts().empty());
}

TEST_CASE("a reserved job rests, durably, where it was before") {
  World world;
  const SessionId session = world.open();
  world.put_and_hold(session, {.priority = 3});
  const JobId buried = world.put_and_bury(session, {.priority = 4});
  const JobId delayed = world.put(session, {.delay = 5});
  for (const JobId job : {buried, delayed}) world.engine.reserve_job(session, world.now, job);
  CHECK(durable(world.engine, world.now) ==
        Lines{"added 1 to default at 0s, ttr 60, '': ready 3",
              "added 2 to default at 0s, ttr 60, '': buried 4 order 0 reserves=1 buries=1",
              "added 3 to default at 0s, ttr 60, '': delayed 0 delay 5 until 5s"});
}

TEST_CASE("a job reserved out of a delay rests ready once that delay would have ended") {
  World world;
  const SessionId session = world.open();
  world.put_and_hold(session, {.delay = 5});
  world.pass(5s);
  CHECK(durable(world.engine, world.now) ==
        Lines{"added 1 to default at 0s, ttr 60, '': ready 0 delay 5"});
}

TEST_CASE("a delay is described again, also after it has ended, and nothing else is") {
  World world;
  const SessionId session = world.open();
  const auto described = [&](JobId job) {
    Recording recording;
    world.engine.durable_state().describe_delay(world.now, job, recording);
    return recording.take_facts();
  };
  const JobId delayed = world.put(session, {.priority = 7, .delay = 5});
  const JobId reserved = world.put(session, {.delay = 6});
  world.engine.reserve_job(session, world.now, reserved);
  CHECK(described(delayed) == Lines{"placed 1: delayed 7 delay 5 until 5s"});
  CHECK(described(reserved) == Lines{"placed 2: delayed 0 delay 6 until 6s"});
  world.pass(6s);
  CHECK(described(delayed) == Lines{"placed 1: ready 7 delay 5"});
  CHECK(described(reserved) == Lines{"placed 2: ready 0 delay 6"});
  world.bury(session, reserved);
  CHECK(described(reserved).empty());
  CHECK(described(world.put(session)).empty());
}

TEST_CASE("the durable list has pauses that hold, and the last id used") {
  World world;
  const SessionId session = world.open("a");
  world.pause("a", 10);
  world.pause("default", 5);
  world.put(session);
  world.put(session);
  world.remove(session, 2);
  world.pass(5s);
  CHECK(durable(world.engine, world.now) ==
        Lines{"added 1 to a at 0s, ttr 60, '': ready 0", "paused a for 10 until 10s", "removed 2"});
}

TEST_CASE("a replayed Placed brings back the place and the counters of its job") {
  World world;
  const SessionId session = world.open();
  const JobId first = world.put_and_hold(session);
  const JobId second = world.put_and_hold(session);
  const JobId third = world.put_and_hold(session);
  world.bury(session, second, 1);
  world.bury(session, first, 2);
  world.release(session, third, 3, 20);
  Engine replayed{Limits()};
  for (const RecordedFact& kept : world.output.log()) replayed.replay(world.now, kept.fact());
  CHECK(replayed.queries().peek_buried(replayed.open())->id == second);
  for (const JobId job : {first, second, third}) {
    const JobInfo info = replayed.queries().job_info(world.now, job).value();
    CHECK(info.state == world.state(job));
    CHECK(info.priority == world.job(job).priority);
    CHECK(info.time_left == world.job(job).time_left);
    CHECK(info.counters == world.job(job).counters);
  }
}

TEST_CASE("a replay in any order of ids puts buried jobs in the order of their burying") {
  World world;
  const SessionId session = world.open();
  for (int i = 0; i < 3; ++i) world.put_and_hold(session);
  for (const JobId job : {3U, 1U, 2U}) world.bury(session, job);
  Recording list;
  world.engine.durable_state().visit(world.now, list);
  World again;
  for (const RecordedFact& kept : list.log()) again.engine.replay(again.now, kept.fact());
  const SessionId other = again.open();
  for (const JobId expected : {3U, 1U, 2U}) {
    CHECK(again.engine.queries().peek_buried(other)->id == expected);
    again.kick(other, 1);
  }
}

TEST_CASE("an id is not used again after a replay") {
  World world;
  world.engine.replay(world.now, Removed{.id = 7});
  CHECK(world.put(world.open()) == 8);
}

TEST_CASE("a replayed pause holds for what is left of it, and keeps its tube") {
  World world;
  world.pass(4s);
  world.engine.replay(world.now, Paused{.tube = "a", .duration = {10}, .until = Time(10s)});
  world.engine.replay(world.now, Paused{.tube = "b", .duration = {3}, .until = Time(4s)});
  CHECK_FALSE(world.has_tube("b"));
  const SessionId session = world.open("a");
  CHECK(world.tube("a").pause_left == 6s);
  world.put(session);
  CHECK(world.take(session) == 0);
  world.pass(6s);
  CHECK(world.take(session) == 1);
}

TEST_CASE("a replayed job can be reserved, and counts on from its counters") {
  World world;
  const Added added{.id = 5,
                    .tube = "a",
                    .ttr = {7},
                    .created = Time(-100s),
                    .body = Bytes::copy_of("old"),
                    .place = {.state = JobState::ready, .priority = 3, .delay = {}, .until = {}},
                    .counters = {.reserves = 4}};
  world.engine.replay(world.now, added);
  CHECK(world.engine.info().memory_bytes == JobMemory::cost_of(3));
  const SessionId session = world.open("a");
  CHECK(world.take(session) == 5);
  const JobInfo info = world.job(5);
  CHECK(info.counters.reserves == 5);
  CHECK(info.age == 100s);
  CHECK(info.time_left == 7s);
}

TEST_CASE("a job that is added as a fact describes it emits Added, and is given away") {
  World world;
  world.pass(100s);
  const SessionId waiting = world.open("a");
  world.engine.reserve(waiting, world.now, {});
  const auto add = [&](JobId id, const Placement& place, std::string_view tube) {
    CHECK(world.engine.memory().claim(1));
    world.engine.add_job(world.now,
                         {.id = id,
                          .tube = tube,
                          .ttr = {9},
                          .created = world.now - 50s,
                          .body = Bytes::copy_of("x"),
                          .place = place,
                          .counters = {.kicks = 2}},
                         {}, {}, world.output);
    world.engine.check_invariants();
  };
  world.facts();
  Placement place;
  place.priority = 3;
  add(7, place, "a");
  CHECK(world.facts() == Lines{"added 7 to a at 50s, ttr 9, 'x': ready 3 kicks=2"});
  CHECK(world.engine.queries().holder_of(7) == waiting);
  CHECK(world.engine.queries().next_id() == 8);
  place = {};
  place.state = JobState::delayed;
  place.delay = {5};
  place.until = world.now + 3s;
  add(8, place, "b");
  place = {};
  place.state = JobState::buried;
  add(9, place, "b");
  add(10, place, "b");
  CHECK(world.engine.info().jobs.total() == 4);
  CHECK(world.engine.info().memory_bytes == 4 * JobMemory::cost_of(1));
  CHECK(world.engine.queries().job_info(world.now, 8)->time_left == 3s);
  CHECK_FALSE(world.engine.queries().holder_of(8));
  CHECK_FALSE(world.engine.queries().holder_of(99));
  const Lines expected = durable(world.engine, world.now);
  CHECK(expected.size() == 4);
  CHECK(expected.back() == "added 10 to b at 50s, ttr 9, 'x': buried 0 order 1 kicks=2");
}

TEST_CASE("a job is added with its marks, and is held if it is to be") {
  World world;
  world.pass(100s);
  const auto add = [&](JobId id, const Placement& place, const JobTags& tags,
                       const JobMarks& marks) {
    CHECK(world.engine.memory().claim(1 + tags_memory(tags) + marks_memory(tags, marks)));
    world.engine.add_job(world.now,
                         {.id = id,
                          .tube = "a",
                          .ttr = {9},
                          .created = world.now,
                          .body = Bytes::copy_of("x"),
                          .place = place,
                          .counters = {.reserves = 4}},
                         tags, marks, world.output);
  };
  const JobMarks dead{.reserves = 3, .dead_from = "b", .reason = DeathReason::attempts};
  add(1, {}, {}, dead);
  add(2, {}, {.max_attempts = 5}, dead);
  Placement held;
  held.state = JobState::delayed;
  held.until = kNever;
  add(3, held, {.after = "g"}, {});
  add(4, {}, {.group = "g"}, {});
  add(5, {}, {.after = "g"}, {.after_done = true});
  world.engine.check_invariants();
  CHECK(world.engine.queries().job_info(world.now, 1)->marks == dead);
  CHECK(world.engine.queries().job_info(world.now, 2)->marks == dead);
  CHECK(world.engine.queries().job_info(world.now, 3)->held);
  CHECK(world.engine.queries().job_info(world.now, 5)->state == JobState::ready);
  CHECK(world.engine.info().jobs.total() == 5);
  const SessionId session = world.open("a");
  for (JobId id = 1; id <= 5; ++id) CHECK(world.engine.remove_held(world.now, id, world.output));
  CHECK(world.engine.info().memory_bytes == 0);
  world.engine.close(session, world.now, world.output);
}

// A log may hold any number as the time of a job, with a right checksum.
TEST_CASE("jobs that were created at any time are replayed, and are counted by their ages") {
  constexpr Time kLongAgo(Duration::min() / 2);
  constexpr Time kMuchLater(Duration::max() / 2);
  World world;
  world.now = Time(1h);
  JobId id = 0;
  for (const Time created :
       {Time::min(), kLongAgo, Time(-1ns), Time(), world.now, kMuchLater, Time::max()}) {
    world.engine.replay(world.now, Added{.id = ++id,
                                         .tube = "t",
                                         .ttr = {1},
                                         .created = created,
                                         .body = {},
                                         .place = {},
                                         .counters = {}});
    world.engine.check_invariants();
  }
  // A job that waits for a group keeps the time of its delay, and one is held until any time.
  for (const Time until : {Time::min(), kMuchLater}) {
    const JobTags waits{.after = "g"};
    const Placement place{.state = JobState::delayed, .priority = 0, .delay = {}, .until = until};
    world.engine.replay(world.now, AddedWithTags{{.id = id + 1,
                                                  .tube = "delayed",
                                                  .ttr = {1},
                                                  .created = world.now,
                                                  .body = {},
                                                  .place = place,
                                                  .counters = {}},
                                                 waits,
                                                 {}});
    world.engine.replay(world.now, Added{.id = id + 2,
                                         .tube = "held",
                                         .ttr = {1},
                                         .created = world.now,
                                         .body = {},
                                         .place = {},
                                         .counters = {}});
    world.engine.replay(world.now, Held{.id = id + 2, .until = until});
    CHECK(world.job(id + 1).time_left >= 0s);
    CHECK(world.job(id + 2).time_left >= 0s);
    world.engine.replay(world.now, Removed{.id = id + 1});
    world.engine.replay(world.now, Removed{.id = id + 2});
    world.engine.check_invariants();
  }
  world.engine.end_replay();
  constexpr Duration kLong = 70 * 365 * 24h;
  CHECK(world.job(1).age > kLong);
  CHECK(world.job(2).age > kLong);
  for (const JobId later : {5U, 6U, 7U}) CHECK(world.job(later).age == 0s);
  CHECK(world.tube("t").oldest_ready_age > kLong);
  const SessionId session = world.open("t");
  for (JobId given = 1; given <= id; ++given) {
    CHECK(world.take(session) == given);
    CHECK(world.remove(session, given));
  }
}

// Test mode begins far from the middle of the times, and a job that it loads has an age.
TEST_CASE("a job is as old as it was at any time of the clock") {
  for (const Time now : {Time(Duration::min() / 2), Time(), Time(Duration::max() / 2)}) {
    World world;
    world.now = now;
    world.engine.replay(now, Added{.id = 1,
                                   .tube = "t",
                                   .ttr = {1},
                                   .created = now - 100s,
                                   .body = {},
                                   .place = {},
                                   .counters = {}});
    const Placement delayed{
        .state = JobState::delayed, .priority = 0, .delay = {}, .until = now + 4'294'967'295s};
    world.engine.replay(now, Added{.id = 2,
                                   .tube = "t",
                                   .ttr = {1},
                                   .created = now,
                                   .body = {},
                                   .place = delayed,
                                   .counters = {}});
    CHECK(world.job(1).age == 100s);
    CHECK(world.job(2).time_left == 4'294'967'295s);
  }
}

namespace {

Placement buried_at(std::uint64_t order, Priority priority = 0) {
  return {.state = JobState::buried,
          .priority = priority,
          .delay = {},
          .until = {},
          .bury_order = order};
}

// Replays jobs that were buried in this order, with ids from 1.
void replay_buried(World& world, const std::vector<std::uint64_t>& orders) {
  JobId id = 0;
  for (const std::uint64_t order : orders) {
    world.engine.replay(world.now, Added{.id = ++id,
                                         .tube = "t",
                                         .ttr = {1},
                                         .created = world.now,
                                         .body = {},
                                         .place = buried_at(order),
                                         .counters = {}});
  }
}

// Kicks them one after the other.
std::vector<JobId> take_buried(World& world, std::size_t count) {
  const SessionId session = world.open("t");
  std::vector<JobId> ids;
  for (std::size_t i = 0; i < count; ++i) {
    world.kick(session, 1);
    ids.push_back(world.take(session));
  }
  return ids;
}

}  // namespace

// As compaction writes them: old jobs after newer ones.
TEST_CASE("a replay of n buried jobs in any order has O(n log n) steps") {
  constexpr std::uint64_t kJobs = 4096;
  constexpr std::uint64_t kLog = 12;
  for (const std::uint64_t step : {std::uint64_t{1}, kJobs - 1, std::uint64_t{1023}}) {
    CAPTURE(step);
    World world;
    std::vector<std::uint64_t> orders;
    std::vector<JobId> expected(kJobs);
    for (std::uint64_t i = 0; i < kJobs; ++i) {
      orders.push_back((i * step) % kJobs);  // each once: the steps are odd
      expected[orders.back()] = i + 1;
    }
    replay_buried(world, orders);
    world.engine.end_replay();
    CHECK(world.engine.entries_walked() <= 2 * kJobs * kLog);
    world.engine.check_invariants();
    CHECK(take_buried(world, 100) == std::vector(expected.begin(), expected.begin() + 100));
  }
}

// A reprioritize, or a put with the key of a buried job, emits its old place.
TEST_CASE("a replay of the place that a buried job has already has one step") {
  constexpr std::uint64_t kJobs = 4096;
  World world;
  std::vector<std::uint64_t> orders(kJobs);
  std::iota(orders.begin(), orders.end(), 0U);
  replay_buried(world, orders);
  for (JobId id = 1; id <= kJobs; ++id) {
    world.engine.replay(world.now, Placed{.id = id, .place = buried_at(id - 1, 9), .counters = {}});
  }
  world.engine.end_replay();
  CHECK(world.engine.entries_walked() == 0);
  CHECK(world.job(2).priority == 9);
  world.engine.check_invariants();
  CHECK(take_buried(world, 3) == std::vector<JobId>{1, 2, 3});
}

// A salvaged journal may lack the end of a replay: the first session comes after it.
TEST_CASE("the first session finds the buried jobs of a replay in their order") {
  World world;
  replay_buried(world, {5, 3, 4});
  CHECK(take_buried(world, 3) == std::vector<JobId>{2, 3, 1});
}

}  // namespace tubed::engine
