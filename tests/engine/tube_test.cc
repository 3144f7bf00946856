// Kicks, deletes, pauses, and how long a tube lives.
#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

namespace {

Lines tubes_of(const World& world) {
  Lines names;
  world.engine.tube_list().for_each([&](std::string_view name) { names.emplace_back(name); });
  return names;
}

}  // namespace

TEST_CASE("a kick takes buried jobs, the oldest buried first") {
  World world;
  const SessionId session = world.open();
  const JobId first = world.put_and_hold(session, {.priority = 9});
  const JobId second = world.put_and_hold(session, {.priority = 1});
  const JobId third = world.put_and_hold(session);
  for (const JobId job : {second, first, third}) world.bury(session, job, 5);
  CHECK(world.engine.queries().peek_buried(session)->id == second);
  CHECK(world.kick(session, 2) == 2);
  CHECK(world.state(second) == JobState::ready);
  CHECK(world.state(first) == JobState::ready);
  CHECK(world.state(third) == JobState::buried);
  CHECK(world.job(first).counters.kicks == 1);
  CHECK(world.job(first).priority == 5);
}

TEST_CASE("a kick takes delayed jobs only if no job is buried, the soonest first") {
  World world;
  const SessionId session = world.open();
  const JobId later = world.put(session, {.delay = 9});
  const JobId sooner = world.put(session, {.delay = 5});
  const JobId buried = world.put_and_bury(session);
  CHECK(world.kick(session, 10) == 1);
  CHECK(world.state(buried) == JobState::ready);
  CHECK(world.state(sooner) == JobState::delayed);
  CHECK(world.kick(session, 1) == 1);
  CHECK(world.state(sooner) == JobState::ready);
  CHECK(world.state(later) == JobState::delayed);
  CHECK(world.kick(session, 10) == 1);
  CHECK(world.kick(session, 10) == 0);
}

TEST_CASE("a kick takes jobs of the used tube only") {
  World world;
  const SessionId session = world.open("a");
  const SessionId other = world.open("b");
  const JobId job = world.put_and_bury(session);
  CHECK(world.kick(other, 10) == 0);
  CHECK(world.state(job) == JobState::buried);
}

TEST_CASE("a kicked job goes to a session that waits") {
  World world;
  const SessionId session = world.open();
  const SessionId worker = world.open();
  world.put_and_bury(session);
  world.reserve(worker);
  world.kick(session, 1);
  CHECK(world.notices() == Lines{"1 reserved 1 ''"});
}

TEST_CASE("kick_job moves one buried or delayed job of any tube, and no other") {
  World world;
  const SessionId session = world.open("a");
  const JobId delayed = world.put(session, {.delay = 5});
  const JobId buried = world.put_and_bury(session);
  const JobId held = world.put_and_hold(session);
  CHECK(world.engine.kick_job(world.now, delayed, {}, world.output));
  CHECK(world.engine.kick_job(world.now, buried, {}, world.output));
  CHECK(world.state(delayed) == JobState::ready);
  CHECK(world.state(buried) == JobState::ready);
  CHECK(world.job(buried).counters.kicks == 1);
  for (const JobId job : {delayed, held, JobId{99}}) {
    CHECK_FALSE(world.engine.kick_job(world.now, job, {}, world.output));
  }
  CHECK(world.engine.next_deadlines().delay == kNever);
}

TEST_CASE("a ready, delayed or buried job can be deleted by any session") {
  World world;
  const SessionId producer = world.open("a");
  const SessionId other = world.open();
  const JobId ready = world.put(producer);
  const JobId delayed = world.put(producer, {.delay = 5});
  const JobId buried = world.put_and_bury(producer);
  for (const JobId job : {ready, delayed, buried}) {
    CHECK(world.remove(other, job));
    CHECK_FALSE(world.engine.queries().peek(job));
    CHECK_FALSE(world.remove(other, job));
  }
  CHECK(world.tube("a").delete_count == 3);
  CHECK(world.engine.info().memory_bytes == 0);
}

TEST_CASE("a reserved job can be deleted by its holder only") {
  World world;
  const SessionId holder = world.open();
  const SessionId other = world.open();
  const JobId job = world.put_and_hold(holder);
  CHECK_FALSE(world.remove(other, job));
  CHECK(world.state(job) == JobState::reserved);
  CHECK(world.remove(holder, job));
  CHECK_FALSE(world.engine.queries().peek(job));
}

TEST_CASE("peeks show the job that comes next in its state, of the used tube") {
  World world;
  const SessionId session = world.open("a");
  CHECK_FALSE(world.engine.queries().peek_ready(session));
  CHECK_FALSE(world.engine.queries().peek_delayed(session));
  CHECK_FALSE(world.engine.queries().peek_buried(session));
  world.put(session, {.priority = 5});
  const JobId ready = world.put(session, {.priority = 1, .body = "x"});
  world.put(session, {.delay = 9});
  const JobId delayed = world.put(session, {.delay = 3});
  const JobId buried = world.put_and_bury(session);
  world.put_and_bury(session);
  CHECK(world.engine.queries().peek_ready(session)->id == ready);
  CHECK(world.engine.queries().peek_ready(session)->body.view() == "x");
  CHECK(world.engine.queries().peek_delayed(session)->id == delayed);
  CHECK(world.engine.queries().peek_buried(session)->id == buried);
  CHECK(world.engine.queries().peek(buried)->id == buried);
  world.engine.use(session, world.now, "b");
  CHECK_FALSE(world.engine.queries().peek_ready(session));
}

TEST_CASE("a paused tube gives no jobs, and other tubes do") {
  World world;
  const SessionId worker = world.open();
  const SessionId producer = world.open("a");
  world.engine.watch(worker, world.now, "a");
  const JobId held_back = world.put(producer, {.priority = 0});
  const JobId other = world.put(worker, {.priority = 9});
  CHECK(world.pause("a", 10));
  CHECK(world.take(worker) == other);
  CHECK(world.take(worker) == 0);
  CHECK(world.engine.queries().peek_ready(producer)->id == held_back);
  world.reserve(worker);
  world.put(producer);
  CHECK(world.notices().empty());
}

TEST_CASE("the end of a pause serves waiting sessions, at exactly its time") {
  World world;
  const SessionId producer = world.open("a");
  const SessionId worker = world.open("a");
  world.put(producer);
  world.pause("a", 10);
  world.reserve(worker);
  CHECK(world.engine.next_deadlines().pause == world.now + 10s);
  world.pass(10s - 1ns);
  CHECK(world.notices().empty());
  CHECK(world.tube("a").pause == Seconds{10});
  CHECK(world.tube("a").pause_left == 1ns);
  world.pass(1ns);
  CHECK(world.notices() == Lines{"1 reserved 1 ''"});
  CHECK(world.tube("a").pause == Seconds{0});
  CHECK(world.tube("a").pause_left == 0s);
}

TEST_CASE("a pause of 0 ends a pause, and waiting sessions get jobs") {
  World world;
  const SessionId producer = world.open("a");
  const SessionId worker = world.open("a");
  world.put(producer);
  world.pause("a", 10);
  world.reserve(worker);
  world.pause("a", 0);
  CHECK(world.notices() == Lines{"1 reserved 1 ''"});
  CHECK(world.engine.next_deadlines().pause == kNever);
  CHECK(world.tube("a").pause_count == 2);
}

TEST_CASE("a new pause restarts the pause") {
  World world;
  world.open("a");
  world.pause("a", 10);
  world.pass(5s);
  world.pause("a", 10);
  CHECK(world.tube("a").pause_left == 10s);
  world.pass(5s);
  CHECK(world.tube("a").pause_left == 5s);
}

TEST_CASE("an unknown tube cannot be paused") {
  World world;
  CHECK_FALSE(world.pause("a", 10));
  CHECK(world.output.take().empty());
}

TEST_CASE("a tube exists while a session uses or watches it or it has jobs") {
  World world;
  const SessionId user = world.open();
  const SessionId watcher = world.open();
  CHECK_FALSE(world.has_tube("a"));
  world.engine.use(user, world.now, "a");
  world.engine.watch(watcher, world.now, "a");
  const JobId job = world.put(user);
  world.engine.use(user, world.now, "default");
  CHECK(world.has_tube("a"));
  CHECK(world.engine.ignore(watcher, world.now, "a"));
  CHECK(world.has_tube("a"));
  CHECK(world.engine.reserve_job(user, world.now, job));
  CHECK(world.has_tube("a"));
  CHECK(world.remove(user, job));
  CHECK_FALSE(world.has_tube("a"));
}

TEST_CASE("a closed session lets go of the tubes it used and watched") {
  World world;
  const SessionId session = world.open();
  world.engine.use(session, world.now, "a");
  world.engine.watch(session, world.now, "a");
  world.engine.watch(session, world.now, "b");
  world.engine.use(session, world.now, "c");
  world.close(session);
  CHECK(tubes_of(world) == Lines{"default"});
}

TEST_CASE("the tube default always exists") {
  World world;
  const SessionId session = world.open("a");
  world.close(session);
  CHECK(tubes_of(world) == Lines{"default"});
}

TEST_CASE("the last watched tube cannot be ignored, and ignoring what is not watched is fine") {
  World world;
  const SessionId session = world.open();
  CHECK_FALSE(world.engine.ignore(session, world.now, "default"));
  CHECK(world.engine.ignore(session, world.now, "a"));
  CHECK(world.engine.watch(session, world.now, "a"));
  CHECK(world.engine.watch(session, world.now, "a"));
  CHECK(world.engine.queries().watched_count(session) == 2);
  CHECK(world.engine.ignore(session, world.now, "default"));
  CHECK_FALSE(world.engine.ignore(session, world.now, "a"));
  CHECK(world.engine.queries().watched_count(session) == 1);
}

TEST_CASE("a tube that only its pause keeps is removed with it, whichever way it ends") {
  World world;
  world.engine.replay(world.now, Paused{.tube = "a", .duration = {10}, .until = Time(10s)});
  world.engine.replay(world.now, Paused{.tube = "b", .duration = {20}, .until = Time(20s)});
  world.open();
  CHECK(world.has_tube("a"));
  world.pass(10s);
  CHECK_FALSE(world.has_tube("a"));
  CHECK(world.pause("b", 0));
  CHECK_FALSE(world.has_tube("b"));
}

}  // namespace tubed::engine
