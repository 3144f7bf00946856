// The order of jobs, and of the sessions that get them.
#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

TEST_CASE("ready jobs come by priority, and by id within one") {
  World world;
  const SessionId worker = world.open();
  const JobId late = world.put(worker, {.priority = 7});
  const JobId second = world.put(worker, {.priority = 5});
  const JobId third = world.put(worker, {.priority = 5});
  const JobId first = world.put(worker, {.priority = 0});
  for (const JobId expected : {first, second, third, late}) CHECK(world.take(worker) == expected);
  CHECK(world.take(worker) == 0);
}

TEST_CASE("a released job takes its old place back") {
  World world;
  const SessionId worker = world.open();
  const JobId first = world.put(worker);
  const JobId second = world.put(worker);
  CHECK(world.take(worker) == first);
  world.put(worker);
  CHECK(world.release(worker, first));
  CHECK(world.take(worker) == first);
  CHECK(world.take(worker) == second);
}

TEST_CASE("a release sets the priority by which the job competes") {
  World world;
  const SessionId worker = world.open();
  const JobId first = world.put(worker);
  const JobId second = world.put(worker);
  CHECK(world.take(worker) == first);
  CHECK(world.release(worker, first, 1));
  CHECK(world.take(worker) == second);
}

TEST_CASE("of all watched tubes the smallest pair of priority and id wins") {
  World world;
  const SessionId a = world.open("a");
  const SessionId b = world.open("b");
  const SessionId worker = world.open("a");
  world.engine.watch(worker, world.now, "b");
  const JobId third = world.put(a, {.priority = 2});
  const JobId first = world.put(b, {.priority = 1});
  const JobId second = world.put(a, {.priority = 1});
  for (const JobId expected : {first, second, third}) CHECK(world.take(worker) == expected);
}

TEST_CASE("a tube that is not watched gives nothing") {
  World world;
  const SessionId a = world.open("a");
  const SessionId worker = world.open("b");
  world.put(a);
  CHECK(world.take(worker) == 0);
}

TEST_CASE("sessions are served in the order in which they began to wait") {
  World world;
  const SessionId producer = world.open();
  for (int i = 0; i < 3; ++i) world.open();
  for (const SessionId worker : {3U, 1U, 2U}) world.reserve(worker);
  for (int i = 0; i < 3; ++i) world.put(producer);
  CHECK(world.notices() == Lines{"3 reserved 1 ''", "1 reserved 2 ''", "2 reserved 3 ''"});
}

TEST_CASE("sessions are served in the order of their waiting whatever tubes they watch") {
  World world;
  const SessionId holder = world.open("a");
  const JobId in_a = world.put_and_hold(holder);
  world.engine.use(holder, world.now, "b");
  const JobId in_b = world.put_and_hold(holder);
  const SessionId first = world.open("b");
  const SessionId second = world.open("a");
  world.engine.watch(second, world.now, "b");
  const SessionId third = world.open("a");
  for (const SessionId worker : {first, second, third}) world.reserve(worker);
  world.close(holder);
  CHECK(world.notices() == Lines{"1 reserved 2 ''", "2 reserved 1 ''"});
  CHECK(world.state(in_a) == JobState::reserved);
  CHECK(world.state(in_b) == JobState::reserved);
  CHECK(world.engine.info().waiting == 1);
}

TEST_CASE("of several tubes made ready at once each session gets the best job it may have") {
  World world;
  const SessionId holder = world.open("a");
  world.put_and_hold(holder, {.priority = 9});
  world.put_and_hold(holder, {.priority = 3});
  world.engine.use(holder, world.now, "b");
  world.put_and_hold(holder, {.priority = 5});
  world.put_and_hold(holder, {.priority = 1});
  const SessionId both = world.open("a");
  world.engine.watch(both, world.now, "b");
  const SessionId only_b = world.open("b");
  const SessionId only_a = world.open("a");
  const SessionId late = world.open("b");
  for (const SessionId worker : {both, only_b, only_a, late}) world.reserve(worker);
  world.close(holder);
  CHECK(world.notices() == Lines{"1 reserved 4 ''", "2 reserved 3 ''", "3 reserved 2 ''"});
}

TEST_CASE("a session served through one tube does not lend its turn in another") {
  World world;
  const SessionId holder = world.open("a");
  world.put_and_hold(holder, {.priority = 0});
  world.put_and_hold(holder, {.priority = 1});
  world.engine.use(holder, world.now, "b");
  world.put_and_hold(holder, {.priority = 5});
  const SessionId first = world.open("a");
  const SessionId only_a = world.open("a");
  const SessionId last = world.open("a");
  for (const SessionId both : {first, last}) world.engine.watch(both, world.now, "b");
  for (const SessionId worker : {first, only_a, last}) world.reserve(worker);
  world.close(holder);
  CHECK(world.notices() == Lines{"1 reserved 1 ''", "2 reserved 2 ''", "3 reserved 3 ''"});
}

TEST_CASE("a waiting session gets its job through any tube, and only one") {
  World world;
  const SessionId producer = world.open("a");
  const SessionId worker = world.open("a");
  world.engine.watch(worker, world.now, "b");
  world.reserve(worker);
  CHECK(world.tube("b").waiting_count == 1);
  world.put(producer);
  CHECK(world.notices() == Lines{"1 reserved 1 ''"});
  CHECK(world.tube("b").waiting_count == 0);
  const JobId second = world.put(producer);
  CHECK(world.state(second) == JobState::ready);
}

TEST_CASE("a session may be given what it puts while it waits") {
  World world;
  const SessionId worker = world.open();
  world.reserve(worker);
  world.put(worker, {.body = "mine"});
  CHECK(world.notices() == Lines{"0 reserved 1 'mine'"});
}

TEST_CASE("a wait ends at its limit, at exactly that moment") {
  World world;
  const SessionId worker = world.open();
  world.reserve(worker, 5s);
  world.pass(5s - 1ns);
  CHECK(world.notices().empty());
  world.pass(1ns);
  CHECK(world.notices() == Lines{"0 timed out"});
  world.pass(10s);
  CHECK(world.notices().empty());
}

TEST_CASE("a wait of 0 ends at once, with a job or without") {
  World world;
  const SessionId worker = world.open();
  world.reserve(worker, 0s);
  CHECK(world.notices() == Lines{"0 timed out"});
  world.put(worker);
  world.reserve(worker, 0s);
  CHECK(world.notices() == Lines{"0 reserved 1 ''"});
}

TEST_CASE("a wait without a limit does not end by time") {
  World world;
  const SessionId worker = world.open();
  world.reserve(worker);
  CHECK(world.next_deadline() == kNever);
  world.pass(1000h);
  CHECK(world.notices().empty());
}

TEST_CASE("a job that becomes ready at the moment a wait ends is given") {
  World world;
  const SessionId worker = world.open();
  world.put(worker, {.delay = 5});
  world.reserve(worker, 5s);
  world.pass(5s);
  CHECK(world.notices() == Lines{"0 reserved 1 ''"});
}

TEST_CASE("waits that end at one moment end in the order in which they began") {
  World world;
  for (int i = 0; i < 3; ++i) world.open();
  for (const SessionId worker : {1U, 2U, 0U}) world.reserve(worker, 5s);
  world.pass(5s);
  CHECK(world.notices() == Lines{"1 timed out", "2 timed out", "0 timed out"});
}

TEST_CASE("a cancelled wait ends without an answer and gets nothing") {
  World world;
  const SessionId worker = world.open();
  const SessionId producer = world.open();
  world.reserve(worker, 5s);
  world.engine.cancel_wait(worker);
  CHECK(world.engine.info().waiting == 0);
  const JobId job = world.put(producer);
  world.pass(10s);
  CHECK(world.notices().empty());
  CHECK(world.state(job) == JobState::ready);
  CHECK(world.take(worker) == job);
}

TEST_CASE("a session that waits and is closed gets nothing") {
  World world;
  const SessionId producer = world.open();
  const SessionId worker = world.open();
  world.reserve(worker, 5s);
  world.close(worker);
  world.put(producer);
  world.pass(10s);
  CHECK(world.notices().empty());
  CHECK(world.tube("default").waiting_count == 0);
}

namespace {

// The jobs of 1,000 that a gives, with this weight; b has the weight 5300.
int jobs_of_a(ReserveMode mode, std::uint32_t weight) {
  Limits limits;
  limits.tubes_with_metrics = 10;
  World world(limits);
  const SessionId worker = world.open("a");
  const SessionId other = world.open("b");
  // Enough of both tubes, of no time.
  for (const SessionId session : {worker, other}) {
    for (int job = 0; job < 10; ++job) world.remove(session, world.put_and_hold(session));
    for (int job = 0; job < 1000; ++job) world.put(session);
  }
  world.engine.watch(worker, world.now, "a", weight);
  world.engine.watch(worker, world.now, "b", 5300);
  world.engine.set_mode(worker, mode);
  int count = 0;
  for (int job = 0; job < 1000; ++job) {
    const auto given = world.engine.reserve_ready(worker, world.now);
    REQUIRE(given);
    if (world.job(given->id).tube == "a") ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("tubes give jobs in proportion to their weights, also to large weights") {
  for (const ReserveMode mode : {ReserveMode::weighted, ReserveMode::weighted_fair}) {
    CHECK(jobs_of_a(mode, 9999) == 653);
    CHECK(jobs_of_a(mode, 5300) == 500);
    CHECK(jobs_of_a(mode, 53) == 10);
  }
}

}  // namespace tubed::engine
