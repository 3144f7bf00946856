// Bounds, and work that is done in slices.
#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

namespace {

constexpr std::uint32_t kWork = 3;

Limits small_turns() {
  Limits limits;
  limits.work_per_turn = kWork;
  return limits;
}

}  // namespace

TEST_CASE("no more tubes are made than the limit says") {
  Limits limits;
  limits.tubes = 2;
  World world(limits);
  const SessionId session = world.open();
  CHECK(world.engine.use(session, world.now, "a"));
  CHECK_FALSE(world.engine.use(session, world.now, "b"));
  CHECK_FALSE(world.engine.watch(session, world.now, "b"));
  CHECK(world.engine.used_tube(session) == "a");
  CHECK(world.engine.queries().watched_count(session) == 1);
  CHECK(world.engine.watch(session, world.now, "a"));
  CHECK(world.engine.info().tubes == 2);
}

TEST_CASE("no more watches are made than the limit says, and a known one needs no room") {
  Limits limits;
  limits.watches = 3;
  World world(limits);
  const SessionId first = world.open();
  const SessionId second = world.open();
  CHECK(world.engine.watch(first, world.now, "a"));
  CHECK_FALSE(world.engine.watch(second, world.now, "a"));
  CHECK_FALSE(world.engine.watch(second, world.now, "b"));
  CHECK_FALSE(world.has_tube("b"));
  CHECK(world.engine.watch(first, world.now, "a"));
  CHECK(world.engine.info().watches == 3);
  world.close(first);
  CHECK(world.engine.watch(second, world.now, "a"));
}

TEST_CASE("a watch list is no longer than the limit says, whatever the others have") {
  Limits limits;
  limits.session_watches = 2;
  World world(limits);
  const SessionId first = world.open();
  const SessionId second = world.open();
  CHECK(world.engine.watch(first, world.now, "a"));
  CHECK_FALSE(world.engine.watch(first, world.now, "b"));
  CHECK(world.engine.watch(first, world.now, "a"));
  CHECK(world.engine.watch(second, world.now, "b"));
  CHECK(world.engine.ignore(first, world.now, "a"));
  CHECK(world.engine.watch(first, world.now, "b"));
}

TEST_CASE("memory is claimed before a job is put, and comes back when it is deleted") {
  Limits limits;
  limits.job_memory_bytes = 2 * JobMemory::cost_of(10);
  World world(limits);
  const SessionId session = world.open();
  const JobId job = world.put(session, {.body = "0123456789"});
  CHECK(world.engine.memory().claim(10));
  CHECK(world.engine.info().memory_bytes == limits.job_memory_bytes);
  CHECK_FALSE(world.engine.memory().claim(0));
  world.engine.memory().give_back(10);
  CHECK_FALSE(world.engine.memory().claim(11));
  CHECK(world.remove(session, job));
  CHECK(world.engine.info().memory_bytes == 0);
}

TEST_CASE("memory is short while the job that was refused last would be refused again") {
  Limits limits;
  limits.job_memory_bytes = 2 * JobMemory::cost_of(10);
  World world(limits);
  const SessionId session = world.open();
  const JobId job = world.put(session, {.body = "0123456789"});
  CHECK_FALSE(world.engine.memory().is_short());
  CHECK_FALSE(world.engine.memory().claim(11));
  CHECK(world.engine.memory().is_short());
  // A job that fits was put since.
  CHECK(world.engine.memory().claim(10));
  CHECK_FALSE(world.engine.memory().is_short());
  CHECK_FALSE(world.engine.memory().claim(0));
  CHECK(world.engine.memory().is_short());
  // Memory is free again, before any other put.
  CHECK(world.remove(session, job));
  CHECK_FALSE(world.engine.memory().is_short());
}

TEST_CASE("lowered limits apply at once, and existing jobs and tubes stay") {
  World world;
  const SessionId session = world.open("a");
  world.put(session);
  world.engine.set_limits({.job_memory_bytes = 1, .tubes = 1, .watches = 0});
  CHECK_FALSE(world.engine.memory().claim(0));
  CHECK_FALSE(world.engine.use(session, world.now, "b"));
  CHECK(world.has_tube("a"));
  CHECK(world.take(session) == 1);
}

TEST_CASE("a kick moves work_per_turn jobs a slice and says how many are to come") {
  World world(small_turns());
  const SessionId session = world.open();
  for (int i = 0; i < 8; ++i) world.put_and_bury(session);
  Slices kick = world.engine.queries().slices_to_kick(world.engine.used_tube(session), 7);
  CHECK(world.engine.kick(world.now, kick, world.output) == kWork);
  CHECK(kick.left == 4);
  CHECK(world.engine.kick(world.now, kick, world.output) == kWork);
  CHECK(world.engine.kick(world.now, kick, world.output) == 1);
  CHECK(kick.left == 0);
  CHECK(world.engine.info().jobs.ready == 7);
  CHECK(world.engine.info().jobs.buried == 1);
}

TEST_CASE("a kick in slices ends when others have taken its jobs away") {
  World world(small_turns());
  const SessionId session = world.open();
  for (int i = 0; i < 5; ++i) world.put_and_bury(session);
  Slices kick = world.engine.queries().slices_to_kick(world.engine.used_tube(session), 5);
  CHECK(world.engine.kick(world.now, kick, world.output) == kWork);
  CHECK(world.remove(session, 4));
  CHECK(world.engine.kick(world.now, kick, world.output) == 1);
  CHECK(kick.left == 0);
}

TEST_CASE("a kick that began with buried jobs takes no delayed ones") {
  World world(small_turns());
  const SessionId session = world.open();
  for (int i = 0; i < 5; ++i) world.put_and_bury(session);
  world.put(session, {.delay = 9});
  CHECK(world.kick(session, 100) == 5);
  CHECK(world.engine.info().jobs.delayed == 1);
}

TEST_CASE("a close gives work_per_turn jobs back at once and the others in advance") {
  World world(small_turns());
  const SessionId holder = world.open();
  const SessionId other = world.open();
  for (int i = 0; i < 8; ++i) world.put_and_hold(holder);
  world.facts();
  world.close(holder);
  CHECK(world.facts().size() == kWork);
  CHECK(world.engine.info().jobs.ready == kWork);
  CHECK(world.engine.next_deadlines().closing);
  CHECK(world.open() == 2);  // its id is not free yet
  CHECK_FALSE(world.remove(other, 8));
  world.engine.advance(world.now, world.output);
  CHECK(world.engine.info().jobs.ready == 2 * kWork);
  CHECK(world.engine.next_deadlines().closing);
  world.engine.advance(world.now, world.output);
  CHECK(world.engine.info().jobs.ready == 8);
  CHECK(world.next_deadline() == kNever);
  CHECK(world.open() == holder);
}

TEST_CASE("jobs of a closed session that are still to be given back do not time out") {
  World world(small_turns());
  const SessionId holder = world.open();
  for (int i = 0; i < 8; ++i) world.put_and_hold(holder, {.ttr = 1});
  world.close(holder);
  world.pass(5s);
  CHECK(world.engine.info().jobs.ready == 8);
  CHECK(world.engine.info().timeouts == 0);
}

TEST_CASE("advance makes work_per_turn due jobs ready a slice, and reports whether more are due") {
  World world(small_turns());
  const SessionId session = world.open();
  for (int i = 0; i < 8; ++i) world.put(session, {.delay = 1});
  world.now += 1s;
  for (const std::uint64_t ready : {3U, 6U}) {
    world.engine.advance(world.now, world.output);
    CHECK(world.engine.info().jobs.ready == ready);
    CHECK(world.engine.next_deadlines().delay <= world.now);
  }
  world.engine.advance(world.now, world.output);
  CHECK(world.engine.info().jobs.ready == 8);
  CHECK(world.next_deadline() == kNever);
}

TEST_CASE("advance ends work_per_turn due reservations a slice, and reports whether more are due") {
  World world(small_turns());
  const SessionId session = world.open();
  for (int i = 0; i < 8; ++i) world.put_and_hold(session, {.ttr = 1});
  world.now += 1s;
  for (const std::uint64_t timeouts : {3U, 6U}) {
    world.engine.advance(world.now, world.output);
    CHECK(world.engine.info().timeouts == timeouts);
    CHECK(world.engine.next_deadlines().ttr <= world.now);
  }
  world.engine.advance(world.now, world.output);
  CHECK(world.engine.info().timeouts == 8);
  CHECK(world.next_deadline() == kNever);
}

TEST_CASE("advance ends work_per_turn due waits a slice, and reports whether more are due") {
  World world(small_turns());
  for (int i = 0; i < 5; ++i) world.reserve(world.open(), 1s);
  world.now += 1s;
  world.engine.advance(world.now, world.output);
  CHECK(world.notices() == Lines{"0 timed out", "1 timed out", "2 timed out"});
  CHECK(world.engine.next_deadlines().ttr <= world.now);
  world.engine.advance(world.now, world.output);
  CHECK(world.notices() == Lines{"3 timed out", "4 timed out"});
  CHECK(world.next_deadline() == kNever);
}

TEST_CASE("advance ends work_per_turn due pauses a slice, and reports whether more are due") {
  World world(small_turns());
  for (const std::string_view tube : {"a", "b", "c", "d", "e"}) {
    world.open(tube);
    world.pause(tube, 1);
  }
  world.now += 1s;
  world.engine.advance(world.now, world.output);
  CHECK(world.tube("c").pause == Seconds{0});
  CHECK(world.tube("d").pause == Seconds{1});
  CHECK(world.engine.next_deadlines().pause <= world.now);
  world.engine.advance(world.now, world.output);
  CHECK(world.tube("e").pause == Seconds{0});
  CHECK(world.next_deadline() == kNever);
}

TEST_CASE("delays that end at one moment end in the order of ids, whatever their tubes") {
  World world(small_turns());
  const SessionId a = world.open("a");
  const SessionId b = world.open("b");
  for (int i = 0; i < 2; ++i) {
    world.put(b, {.delay = 1});
    world.put(a, {.delay = 1});
  }
  world.now += 1s;
  world.engine.advance(world.now, world.output);
  for (const JobId job : {1U, 2U, 3U}) CHECK(world.state(job) == JobState::ready);
  CHECK(world.state(4) == JobState::delayed);
}

}  // namespace tubed::engine
