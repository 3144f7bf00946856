// Reservations as facts, and the jobs that were held before a replay.
#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

namespace {

// Replays the durable list of a world whose session 0 holds job 1, with a TTR of 10 s.
void restore_held(World& again, JobState rests = JobState::ready) {
  World world;
  world.engine.recorded_reservations().record_to(&world.output);
  const SessionId session = world.open("a");
  world.put(session, {.delay = rests == JobState::delayed ? 5U : 0U, .ttr = 10});
  world.engine.reserve_job(session, world.now, 1);
  again.restore(world);
  again.engine.recorded_reservations().record_to(&again.output);
}

}  // namespace

TEST_CASE("without recording, a reservation is no fact") {
  World world;
  const SessionId session = world.open();
  world.put(session);
  world.facts();
  world.take(session);
  world.engine.touch(session, world.now, 1);
  CHECK(world.facts().empty());
}

TEST_CASE("where reservations are recorded, a reserve and a touch emit Held") {
  World world;
  world.engine.recorded_reservations().record_to(&world.output);
  const SessionId session = world.open();
  world.put(session, {.ttr = 10});
  world.take(session);
  CHECK(world.facts().back() == "held 1 until 10s");
  world.pass(4s);
  world.engine.touch(session, world.now, 1);
  world.engine.touch(session, world.now, 1, {{{3}}});
  CHECK(world.facts() == Lines{"held 1 until 14s", "held 1 until 7s"});
  world.release(session, 1);
  CHECK(world.facts() == Lines{"placed 1: ready 0 reserves=1 releases=1"});
}

TEST_CASE("a waiting session's Held follows the Added of its job") {
  World world;
  world.engine.recorded_reservations().record_to(&world.output);
  const SessionId session = world.open();
  world.reserve(session);
  world.put(session, {.ttr = 10});
  CHECK(world.output.take() == Lines{"added 1 to default at 0s, ttr 10, '': ready 0",
                                     "held 1 until 10s", "0 reserved 1 ''"});
}

TEST_CASE("a Held follows each fact about the resting place of a job that stays reserved") {
  World world;
  world.engine.recorded_reservations().record_to(&world.output);
  const SessionId session = world.open();
  const JobTags tags{.unique_key = "k"};
  const auto put = [&](Priority priority) {
    REQUIRE(world.engine.memory().claim(tags_memory(tags)));
    world.engine.put_with_tags(world.now, kDefaultTube,
                               {.priority = priority, .delay = {}, .ttr = {10}, .body = {}}, tags,
                               world.output);
  };
  put(5);
  world.take(session);
  world.facts();
  put(4);  // lowers the priority of the first
  CHECK(world.facts() == Lines{"placed 1: ready 4", "held 1 until 10s"});
  Recording described;
  world.engine.durable_state().describe(world.now, 1, described);
  world.engine.durable_state().describe_delay(world.now, 1, described);
  CHECK(described.take_facts() == Lines{"added 1 to default at 0s, ttr 10, no body: ready 4 idp:k",
                                        "held 1 until 10s", "held 1 until 10s"});
}

TEST_CASE("a job that was held before a replay is reserved, and by no session that exists") {
  World world;
  restore_held(world);
  CHECK(world.state(1) == JobState::reserved);
  CHECK(world.job(1).counters.reserves == 1);
  CHECK(world.job(1).time_left == 10s);
  CHECK_FALSE(world.engine.queries().holder_of(1));
  CHECK(world.engine.recorded_reservations().held_over_count() == 1);
  CHECK(world.engine.info().sessions == 0);
  const SessionId session = world.open("a");
  CHECK(world.take(session) == 0);
  CHECK_FALSE(world.engine.holds_jobs(session));
  CHECK(world.engine.queries().peek_reserved(session)->id == 1);
}

TEST_CASE("any session may release, bury, touch, move or delete a job of the past") {
  World released;
  restore_held(released);
  CHECK(released.release(released.open(), 1));
  CHECK(released.facts() == Lines{"placed 1: ready 0 reserves=1 releases=1"});

  World buried;
  restore_held(buried);
  CHECK(buried.bury(buried.open(), 1));
  CHECK(buried.state(1) == JobState::buried);

  World removed;
  restore_held(removed);
  CHECK(removed.remove(removed.open(), 1));

  World moved;
  restore_held(moved);
  CHECK(moved.engine.tube_moves().move(moved.open(), moved.now, 1, "b", {}, moved.output) ==
        MoveResult::moved);
  CHECK(moved.state(1) == JobState::ready);
}

TEST_CASE("a touch takes a job of the past over") {
  World world;
  restore_held(world);
  world.engine.recorded_reservations().hold_over(world.now + 1s);
  const SessionId first = world.open();
  const SessionId second = world.open();
  CHECK(world.engine.touch(first, world.now, 1));
  CHECK(world.facts() == Lines{"held 1 until 10s"});
  CHECK(world.engine.queries().holder_of(1) == first);
  CHECK(world.engine.recorded_reservations().held_over_count() == 0);
  CHECK_FALSE(world.engine.touch(second, world.now, 1));
  world.pass(2s);
  CHECK(world.state(1) == JobState::reserved);
  world.close(first);
  CHECK(world.state(1) == JobState::ready);
}

TEST_CASE("a job of the past is given back when its TTR passes, without a timeout") {
  World world;
  restore_held(world);
  CHECK(world.next_deadline() == Time(10s));
  world.pass(10s);
  CHECK(world.facts() == Lines{"placed 1: ready 0 reserves=1"});
  CHECK(world.engine.info().timeouts == 0);
}

TEST_CASE("jobs of the past are given back at the time of hold_over() at the latest") {
  World world;
  restore_held(world);
  world.engine.recorded_reservations().hold_over(Time(4s));
  CHECK(world.next_deadline() == Time(4s));
  world.engine.recorded_reservations().hold_over(Time(40s));
  CHECK(world.next_deadline() == Time(10s));
  world.engine.recorded_reservations().hold_over(Time(4s));
  const SessionId session = world.open("a");
  world.reserve(session);
  world.pass(4s);
  CHECK(world.notices() == Lines{"0 reserved 1 ''"});
  CHECK(world.job(1).counters.reserves == 2);
}

TEST_CASE("jobs of the past are given back in slices") {
  World before;
  before.engine.recorded_reservations().record_to(&before.output);
  const SessionId session = before.open();
  for (int i = 0; i < 5; ++i) before.put_and_hold(session);
  World world(Limits{.work_per_turn = 2});
  world.restore(before);
  world.engine.recorded_reservations().hold_over(world.now);
  for (const std::size_t left : {3U, 1U, 0U}) {
    CHECK(world.engine.next_deadlines().due(world.now));
    world.engine.advance(world.now, world.output);
    CHECK(world.engine.recorded_reservations().held_over_count() == left);
  }
  CHECK_FALSE(world.engine.next_deadlines().due(world.now));
}

TEST_CASE("a replay of Placed, Removed, Moved or Flushed ends a reservation") {
  Placed placed;
  placed.id = 1;
  placed.counters.reserves = 1;
  for (const Fact& fact : {Fact(placed), Fact(Removed{.id = 1}), Fact(Moved{.id = 1, .tube = "b"}),
                           Fact(Flushed{.tube = "a"})}) {
    World world;
    restore_held(world);
    world.engine.replay(world.now, fact);
    world.engine.check_invariants();
    CHECK(world.engine.recorded_reservations().held_over_count() == 0);
    world.remove_pending();
    const bool is_there =
        std::holds_alternative<Placed>(fact) || std::holds_alternative<Moved>(fact);
    CHECK(world.engine.queries().peek(1).has_value() == is_there);
  }
}

TEST_CASE("a Held of a job that is held already moves its deadline, and counts once") {
  World world;
  restore_held(world);
  world.engine.replay(world.now, Held{.id = 1, .until = Time(20s)});
  world.engine.replay(world.now, Held{.id = 7, .until = Time(20s)});  // no such job
  CHECK(world.job(1).time_left == 20s);
  CHECK(world.job(1).counters.reserves == 1);
}

TEST_CASE("a delay whose end was no fact is over when its job is held") {
  World world;
  world.pass(9s);
  Added added;
  added.id = 1;
  added.tube = "a";
  added.place.state = JobState::delayed;
  added.place.delay = {5};
  added.place.until = Time(5s);
  world.engine.replay(Time(1s), added);
  world.engine.replay(world.now, Held{.id = 1, .until = Time(20s)});
  world.engine.check_invariants();
  CHECK(durable(world.engine, Time(1s))[0].ends_with("ready 0 delay 5"));

  World early;
  restore_held(early, JobState::delayed);
  CHECK(durable(early.engine, early.now)[0].ends_with("delayed 0 delay 5 until 5s"));
}

TEST_CASE("a job of the past counts for its concurrency key and for max-reserved") {
  World before;
  before.engine.recorded_reservations().record_to(&before.output);
  const SessionId session = before.open("a");
  before.engine.set_policy(before.now, "a", PolicyKey::max_reserved, "1", before.output);
  for (int i = 0; i < 2; ++i) before.put(session);
  before.take(session);
  const JobTags tags{.concurrency_key = "k"};
  for (int i = 0; i < 2; ++i) {
    REQUIRE(before.engine.memory().claim(tags_memory(tags)));
    before.engine.put_with_tags(before.now, "b", {.delay = {}, .ttr = {60}, .body = {}}, tags,
                                before.output);
  }
  before.engine.reserve_job(session, before.now, 3);

  World world;
  world.restore(before);
  const SessionId of_a = world.open("a");
  const SessionId of_b = world.open("b");
  CHECK(world.take(of_a) == 0);
  CHECK(world.take(of_b) == 0);
  world.remove(of_a, 1);
  world.remove(of_b, 3);
  CHECK(world.take(of_a) == 2);
  CHECK(world.take(of_b) == 4);
}

TEST_CASE("a position is no state of the queue") {
  World world;
  world.engine.replay(world.now, Applied{.index = 1, .term = 2, .chain = 3});
  CHECK(durable(world.engine, world.now).empty());
}

}  // namespace tubed::engine
