// Policies of tubes and the lives of jobs: the facts of each rule, the sweep of expired jobs in
// slices, and the sessions that get a job when a tube gives again.
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "engine/replay.h"
#include "tests/engine/world.h"

namespace tubed::engine {

namespace {

void set_value(World& world, std::string_view tube, PolicyKey key, std::string_view value) {
  REQUIRE((value == kNoPolicyValue || is_policy_value(key, value)));
  REQUIRE(world.engine.set_policy(world.now, tube, key, value, world.output));
  world.engine.check_invariants();
}

JobId put_tagged(World& world, std::string_view tube, const JobTags& tags,
                 std::uint32_t delay = 0) {
  REQUIRE(world.engine.memory().claim(tags_memory(tags)));
  const auto result = world.engine.put_with_tags(
      world.now, tube, {.priority = 0, .delay = {{delay}}, .ttr = {60}, .body = {}}, tags,
      world.output);
  world.engine.check_invariants();
  return result.value().id;
}

JobId put_living(World& world, std::string_view tube, std::uint32_t time_to_live) {
  return put_tagged(world, tube, {.time_to_live = Seconds{time_to_live}});
}

// Takes the job and gives it back.
void try_once(World& world, SessionId session, JobId job) {
  REQUIRE(world.engine.reserve_job(session, world.now, job));
  REQUIRE(world.release(session, job));
}

// One tick.
void advance(World& world) {
  world.engine.advance(world.now, world.output);
  world.engine.check_invariants();
}

Limits two_in_a_tick() {
  Limits limits;
  limits.work_per_turn = 2;
  return limits;
}

TubePattern all_tubes(PolicyKey key, std::string value) {
  TubePattern made{.tubes = "*", .values = {}};
  made.values[static_cast<std::size_t>(key)] = std::move(value);
  return made;
}

Lines durable_facts(const Engine& engine, Time now) {
  Recording list;
  engine.durable_state().visit(now, list);
  return list.take_facts();
}

}  // namespace

// --- Facts

TEST_CASE("a client that sets a value emits it, and so does one that takes it away") {
  World world;
  set_value(world, "t", PolicyKey::backoff, "10:20");
  set_value(world, "t", PolicyKey::backoff, "-");
  CHECK(world.facts() == Lines{"policy of t: backoff 10:20", "policy of t: backoff -"});
  set_value(world, "t", PolicyKey::backoff, "-");
  CHECK(world.facts().empty());
  CHECK_FALSE(world.has_tube("t"));
}

TEST_CASE("a value beyond the limit emits nothing") {
  Limits limits;
  limits.policies = 1;
  World world(limits);
  set_value(world, "t", PolicyKey::ttl, "5");
  world.facts();
  CHECK_FALSE(world.engine.set_policy(world.now, "u", PolicyKey::ttl, "5", world.output));
  CHECK(world.facts().empty());
  set_value(world, "t", PolicyKey::ttl, "6");
  CHECK(world.facts() == Lines{"policy of t: ttl 6"});
}

TEST_CASE("the policies of the settings emit nothing") {
  World world;
  world.engine.set_patterns(world.now, {all_tubes(PolicyKey::keep, "1")}, world.output);
  world.open("t");
  world.engine.set_patterns(world.now, {}, world.output);
  CHECK(world.facts().empty());
}

TEST_CASE("new policies of the settings reach all tubes in slices") {
  Limits limits;
  limits.work_per_turn = 2;
  World world(limits);
  for (const char* tube : {"a", "b", "c", "d"}) world.open(tube);
  const auto governed = [&world] {
    std::string tubes;
    for (const char* tube : {"a", "b", "c", "d"}) {
      if (world.engine.queries().is_full(tube)) tubes += tube;
    }
    return tubes;
  };
  for (const char* tube : {"a", "b", "c", "d"}) {
    REQUIRE(world.engine.memory().claim(0));
    world.engine.put_in_tube(world.now, tube, {.priority = 0, .delay = {}, .ttr = {60}, .body = {}},
                             world.output);
  }
  world.engine.set_patterns(world.now, {all_tubes(PolicyKey::max_jobs, "1")}, world.output);
  CHECK(governed() == "cd");
  CHECK(world.engine.next_deadlines().due(world.now));
  world.pass(0s);
  CHECK(governed() == "abcd");
  world.pass(0s);
  CHECK_FALSE(world.engine.next_deadlines().due(world.now));
}

TEST_CASE("a put with limits emits them, and with the TTR of the policy") {
  World world;
  set_value(world, "t", PolicyKey::default_ttr, "30");
  world.facts();
  put_tagged(world, "t", {.max_attempts = 3, .dead = "d", .time_to_live = Seconds{9}});
  const SessionId session = world.open("t");
  world.put(session, {.ttr = 0});
  CHECK(world.facts() == Lines{"added 1 to t at 0s, ttr 60, no body: ready 0 max:3:d ttl:9",
                               "added 2 to t at 0s, ttr 30, '': ready 0"});
}

TEST_CASE("a job that comes back and may be tried again emits what it did without a policy") {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "2");
  const SessionId session = world.open("t");
  const JobId job = world.put_and_hold(session);
  world.facts();
  world.release(session, job, 5);
  CHECK(world.facts() == Lines{"placed 1: ready 5 reserves=1 releases=1"});
}

TEST_CASE("a dead job emits its place, with the tube and the reason") {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "1");
  const SessionId session = world.open("t");
  const JobId job = world.put_and_hold(session);
  world.facts();
  world.release(session, job, 5, 7);
  CHECK(world.facts() == Lines{"placed 1: buried 5 delay 7 order 0 reserves=1 releases=1 buries=1 "
                               "dead-from=t dead=attempts"});
  CHECK(world.engine.info().dead_jobs == 1);
  CHECK(world.engine.info().expired_jobs == 0);
}

TEST_CASE("a dead job that is deleted emits Removed") {
  World world;
  set_value(world, "t", PolicyKey::max_releases, "1");
  set_value(world, "t", PolicyKey::dead, "delete");
  const SessionId session = world.open("t");
  const JobId job = world.put_and_hold(session);
  world.facts();
  world.release(session, job);
  CHECK(world.facts() == Lines{"removed 1"});
  CHECK(world.engine.info().memory_bytes == 0);
  CHECK(world.engine.info().dead_jobs == 1);
  CHECK(world.tube("t").delete_count == 0);
}

TEST_CASE(
    "a dead job that goes to a tube emits its place, with a new set of attempts, and the move") {
  World world;
  set_value(world, "t", PolicyKey::max_timeouts, "1");
  set_value(world, "t", PolicyKey::dead, "d");
  const SessionId session = world.open("t");
  world.put_and_hold(session, {.ttr = 1});
  world.facts();
  world.pass(1s);
  CHECK(world.facts() == Lines{"placed 1: ready 0 reserves=1 timeouts=1 reserves-before=1 "
                               "timeouts-before=1 dead-from=t dead=timeouts",
                               "moved 1 to d"});
  CHECK(world.job(1).tube == "d");
}

TEST_CASE("a dead job keeps its key if that is free in the other tube") {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "1");
  set_value(world, "t", PolicyKey::dead, "d");
  const SessionId session = world.open();
  const JobId first = put_tagged(world, "t", {.unique_key = "k"});
  try_once(world, session, first);
  const JobId second = put_tagged(world, "t", {.unique_key = "k"});
  world.facts();
  try_once(world, session, second);
  CHECK(world.facts() ==
        Lines{"placed 2: ready 0 reserves=1 releases=1 reserves-before=1 releases-before=1 "
              "dead-from=t dead=attempts",
              "moved 2 to d"});
  CHECK(world.job(first).tags.unique_key == "k");
  CHECK(world.job(second).tags.unique_key.empty());
}

TEST_CASE("a closed session emits the death of each job that it held") {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "1");
  const SessionId session = world.open("t");
  world.put_and_hold(session);
  world.put_and_hold(session);
  world.facts();
  world.close(session);
  CHECK(world.facts() ==
        Lines{"placed 1: buried 0 order 0 reserves=1 buries=1 dead-from=t dead=attempts",
              "placed 2: buried 0 order 1 reserves=1 buries=1 dead-from=t dead=attempts"});
}

TEST_CASE("a reservation that is taken back is no attempt, and has no backoff") {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "2");
  set_value(world, "t", PolicyKey::backoff, "10");
  const SessionId session = world.open("t");
  const SessionId next = world.open("t");
  const JobId job = world.put_and_hold(session);
  world.reserve(next);
  world.output.take();
  world.engine.take_back(session, world.now, world.output);
  world.engine.check_invariants();
  CHECK_FALSE(world.engine.holds_jobs(session));
  CHECK(world.output.take_notices() == Lines{std::to_string(next) + " reserved 1 ''"});
  world.close(next);
  CHECK(world.state(job) == JobState::delayed);
  world.pass(12s);
  for (int i = 0; i < 3; ++i) {
    world.engine.reserve_job(session, world.now, job);
    world.facts();
    world.engine.take_back(session, world.now, world.output);
    world.engine.check_invariants();
    CHECK(world.facts() == Lines{"placed 1: ready 0 delay 10 reserves=" + std::to_string(i + 3) +
                                 " reserves-before=" + std::to_string(i + 2)});
  }
  try_once(world, session, job);
  CHECK(world.state(job) == JobState::buried);
}

TEST_CASE("jobs that are taken back after their expiry or the end of their tube are not ready") {
  World world;
  const SessionId session = world.open("t");
  const JobId living = put_living(world, "t", 5);
  const JobId plain = world.put(session);
  world.engine.reserve_job(session, world.now, living);
  world.engine.reserve_job(session, world.now, plain);
  world.now += 6s;
  world.engine.take_back(session, world.now, world.output);
  world.engine.check_invariants();
  CHECK(world.state(plain) == JobState::ready);
  CHECK(world.engine.info().expired_jobs == 1);
  world.engine.reserve_job(session, world.now, plain);
  world.engine.truncate(world.now, "t", world.output);
  world.engine.take_back(session, world.now, world.output);
  world.engine.check_invariants();
  CHECK(world.engine.info().jobs.ready == 0);
  CHECK_FALSE(world.engine.holds_jobs(session));
}

TEST_CASE("a kick of a dead job emits the start of its new attempts, without the mark") {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "1");
  const SessionId session = world.open("t");
  const JobId job = world.put(session);
  try_once(world, session, job);
  world.facts();
  world.kick(session, 1);
  CHECK(world.facts() == Lines{"placed 1: ready 0 reserves=1 releases=1 buries=1 kicks=1 "
                               "reserves-before=1 releases-before=1"});
  try_once(world, session, job);
  CHECK(world.state(job) == JobState::buried);
}

TEST_CASE("a move of a dead job emits its place, since its marks are other") {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "1");
  set_value(world, "t", PolicyKey::dead, "d");
  const SessionId session = world.open("t");
  const JobId job = world.put(session);
  try_once(world, session, job);
  world.facts();
  world.engine.tube_moves().move(session, world.now, job, "t", {}, world.output);
  CHECK(world.facts() == Lines{"placed 1: ready 0 reserves=1 releases=1 reserves-before=1 "
                               "releases-before=1",
                               "moved 1 to t"});
}

TEST_CASE("a backoff emits the place until which the job is delayed, to the nanosecond") {
  World world;
  set_value(world, "t", PolicyKey::backoff, "100");
  const SessionId session = world.open("t");
  const JobId job = world.put(session);
  world.facts();
  try_once(world, session, job);
  const Duration delay = backoff_delay({.base = {100}, .most = {3'600}, .factor = 2}, job, 1);
  const std::string seconds =
      std::to_string(std::chrono::round<std::chrono::seconds>(delay).count());
  CHECK(world.facts() == Lines{"placed 1: delayed 0 delay " + seconds + " until " +
                               describe(world.now + delay) + " reserves=1 releases=1"});
  CHECK(world.next_deadline() == world.now + delay);
}

TEST_CASE("a job that expires emits Removed") {
  World world;
  put_living(world, "t", 5);
  world.facts();
  CHECK(world.next_deadline() == world.now + 5s);
  world.pass(5s);
  CHECK(world.facts() == Lines{"removed 1"});
  CHECK(world.engine.info().expired_jobs == 1);
  CHECK(world.engine.info().dead_jobs == 0);
  CHECK(world.engine.info().memory_bytes == 0);
  CHECK_FALSE(world.has_tube("t"));
}

TEST_CASE("a job that expires leaves no cooldown") {
  World world;
  put_tagged(world, "t", {.unique_key = "k", .cooldown = {100}, .time_to_live = Seconds{5}});
  world.facts();
  world.pass(5s);
  CHECK(world.facts() == Lines{"removed 1"});
  CHECK(world.engine.info().memory_bytes == 0);
}

TEST_CASE("a job that expires and is kept emits its place") {
  World world;
  set_value(world, "t", PolicyKey::expired, "bury");
  set_value(world, "u", PolicyKey::expired, "late");
  put_living(world, "t", 5);
  put_living(world, "u", 5);
  world.facts();
  world.pass(5s);
  CHECK(world.facts() == Lines{"placed 1: buried 0 order 0 buries=1 dead-from=t dead=expired",
                               "placed 2: ready 0 dead-from=u dead=expired", "moved 2 to late"});
  // The reason stays after a kick: the job does not expire again.
  world.engine.kick_job(world.now, 1, {}, world.output);
  CHECK(world.facts() == Lines{"placed 1: ready 0 buries=1 kicks=1 dead=expired"});
  world.pass(100s);
  CHECK(world.facts().empty());
  CHECK(world.engine.info().expired_jobs == 2);
}

TEST_CASE("the marks, the limits and the policies are durable") {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "1");
  set_value(world, "t", PolicyKey::dead, "d");
  set_value(world, "u", PolicyKey::ttl, "50");
  const SessionId session = world.open();
  try_once(world, session, put_tagged(world, "t", {.max_attempts = 1, .time_to_live = Seconds{9}}));
  put_living(world, "u", 0);
  const Lines list = durable_facts(world.engine, world.now);
  CHECK(list == Lines{"added 1 to d at 0s, ttr 60, no body: ready 0 reserves=1 releases=1 max:1 "
                      "ttl:9 reserves-before=1 releases-before=1 dead-from=t dead=attempts",
                      "added 2 to u at 0s, ttr 60, no body: ready 0 ttl:0",
                      "policy of t: max-attempts 1", "policy of t: dead d", "policy of u: ttl 50"});

  Engine restored{Limits()};
  Replay replay(restored, world.now);
  for (const RecordedFact& fact : world.output.log()) replay.fact(fact.fact());
  restored.end_replay();
  restored.check_invariants();
  CHECK(durable_facts(restored, world.now) == list);
  CHECK(restored.next_deadlines().delay == Time(9s));
}

TEST_CASE("after a replay the jobs in a tube with a ttl expire by their age") {
  World world;
  const SessionId session = world.open("t");
  world.put(session);
  world.pass(30s);
  world.put(session);
  set_value(world, "t", PolicyKey::ttl, "40");
  // Not yet: the jobs rest.
  CHECK(world.next_deadline() == kNever);

  Engine restored{Limits()};
  Replay replay(restored, world.now);
  for (const RecordedFact& fact : world.output.log()) replay.fact(fact.fact());
  restored.end_replay();
  CHECK(restored.next_deadlines().delay == Time(40s));
  Recording output;
  restored.advance(Time(40s), output);
  CHECK(output.take_facts() == Lines{"removed 1"});
  CHECK(restored.next_deadlines().delay == Time(70s));
  restored.check_invariants();
}

// --- Retirements

namespace {

// Of a job that was tried once, in a tube with this value of dead.
Lines retirements_after_one_attempt(std::string_view dead) {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "1");
  set_value(world, "t", PolicyKey::dead, dead);
  const SessionId session = world.open("t");
  world.release(session, world.put_and_hold(session));
  return world.output.take_retirements();
}

}  // namespace

TEST_CASE("a dead job is reported with its counters and the place where it goes") {
  CHECK(retirements_after_one_attempt("bury") == Lines{"1 attempts to bury reserves=1 releases=1"});
  CHECK(retirements_after_one_attempt("delete") ==
        Lines{"1 attempts to delete reserves=1 releases=1"});
  CHECK(retirements_after_one_attempt("d") == Lines{"1 attempts to d reserves=1 releases=1"});
  CHECK(retirements_after_one_attempt("t") == Lines{"1 attempts to bury reserves=1 releases=1"});
}

TEST_CASE("a job that is dead a second time is reported as buried") {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "1");
  set_value(world, "t", PolicyKey::dead, "d");
  set_value(world, "d", PolicyKey::max_attempts, "1");
  set_value(world, "d", PolicyKey::dead, "t");
  const SessionId session = world.open("t");
  const JobId job = world.put(session);
  try_once(world, session, job);
  try_once(world, session, job);
  CHECK(world.output.take_retirements() ==
        Lines{"1 attempts to d reserves=1 releases=1", "1 attempts to bury reserves=2 releases=2"});
}

TEST_CASE("a job that expires is reported, and a job that lives is not") {
  World world;
  put_living(world, "t", 5);
  put_living(world, "t", 50);
  const SessionId session = world.open("t");
  try_once(world, session, 2);
  CHECK(world.output.take_retirements().empty());
  world.pass(5s);
  CHECK(world.output.take_retirements() == Lines{"1 expired to delete"});
}

// --- The sweep

TEST_CASE("expired jobs are removed in slices, and are not given meanwhile") {
  World world(two_in_a_tick());
  std::vector<JobId> old;
  for (int i = 0; i < 5; ++i) old.push_back(put_living(world, "t", 10));
  const JobId live = put_living(world, "t", 1'000);
  const SessionId session = world.open("t");
  world.now += 10s;
  advance(world);
  CHECK(world.engine.info().expired_jobs == 2);
  CHECK(world.next_deadline() <= world.now);

  // The tube gives nothing, by id or by one of several either.
  CHECK_FALSE(world.engine.reserve_job(session, world.now, old.back()));
  CHECK_FALSE(world.engine.reserve_ready(session, world.now));
  CHECK_FALSE(world.engine.queries().peek_next(session, world.now));
  world.engine.check_invariants();
  world.output.take();
  world.reserve(session, 100s);
  CHECK(world.notices().empty());

  // The waiting session gets the next job that lives, as soon as the rest is removed.
  advance(world);
  CHECK(world.engine.info().expired_jobs == 4);
  CHECK(world.notices().empty());
  advance(world);
  CHECK(world.engine.info().expired_jobs == 5);
  CHECK(world.notices() == Lines{"0 reserved " + std::to_string(live) + " no body"});
  CHECK(world.next_deadline() == Time(70s));  // its TTR
}

TEST_CASE("a session does not time out while expired jobs are before a job that lives") {
  World world(two_in_a_tick());
  const SessionId session = world.open("t");
  world.engine.pause(world.now, "t", {{5}}, world.output);
  for (int i = 0; i < 5; ++i) put_living(world, "t", 5);
  const JobId live = put_living(world, "t", 1'000);
  world.reserve(session, 5s);
  world.notices();
  world.pass(5s);
  CHECK(world.notices() == Lines{"0 reserved " + std::to_string(live) + " no body"});
}

TEST_CASE("while the sweep is late, another tube gives jobs") {
  World world(two_in_a_tick());
  for (int i = 0; i < 5; ++i) put_living(world, "t", 10);
  const SessionId session = world.open("t");
  REQUIRE(world.engine.watch(session, world.now, "u"));
  world.now += 10s;
  advance(world);
  const JobId other = put_living(world, "u", 100);
  CHECK(world.take(session) == other);
  // A waiting session as well.
  world.reserve(session, 100s);
  const JobId next = put_living(world, "u", 100);
  CHECK(world.notices() == Lines{"0 reserved " + std::to_string(next) + " no body"});
  world.pass(0s);
  CHECK(world.engine.info().expired_jobs == 5);
  CHECK(world.take(session) == 0);
}

TEST_CASE("a tube gives again when clients have deleted the jobs that were late to expire") {
  World world(two_in_a_tick());
  for (int i = 0; i < 4; ++i) put_living(world, "t", 10);
  const JobId live = put_living(world, "t", 1'000);
  const SessionId waiting = world.open("t");
  const SessionId other = world.open("t");
  world.now += 10s;
  advance(world);
  world.reserve(waiting, 100s);
  CHECK(world.remove(other, 3));
  CHECK(world.remove(other, 4));
  CHECK(world.next_deadline() <= world.now);
  world.notices();
  advance(world);
  CHECK(world.notices() == Lines{"0 reserved " + std::to_string(live) + " no body"});
}

TEST_CASE("a buried job is reserved by its id also after its time to live") {
  World world;
  const SessionId session = world.open("t");
  const JobId job = put_living(world, "t", 10);
  REQUIRE(world.engine.reserve_job(session, world.now, job));
  REQUIRE(world.bury(session, job));
  world.pass(20s);
  CHECK(world.engine.reserve_job(session, world.now, job));
}

TEST_CASE("without memory for its record, a kicked job keeps its old attempts") {
  World world;
  const SessionId session = world.open("t");
  set_value(world, "t", PolicyKey::max_attempts, "5");
  const JobId job = world.put_and_bury(session, {});
  Limits limits = world.engine.limits();
  limits.job_memory_bytes = world.engine.memory().bytes() + 10;
  world.engine.set_limits(limits);
  CHECK(world.engine.kick_job(world.now, job, {}, world.output));
  CHECK(world.engine.memory().bytes() <= limits.job_memory_bytes);
  world.engine.check_invariants();
}

TEST_CASE("a job that lives is given while the jobs after it have expired") {
  World world(two_in_a_tick());
  const JobId live = put_living(world, "t", 1'000);
  for (int i = 0; i < 5; ++i) put_living(world, "t", 10);
  const SessionId session = world.open("t");
  world.now += 10s;
  advance(world);
  CHECK(world.take(session) == live);
  CHECK(world.take(session) == 0);
}

TEST_CASE(
    "the jobs that expire in a tube of buried and reserved jobs cost a sweep each, and stay") {
  World world(two_in_a_tick());
  const SessionId session = world.open("t");
  std::vector<JobId> held;
  for (int i = 0; i < 5; ++i) {
    held.push_back(put_living(world, "t", 10));
    REQUIRE(world.engine.reserve_job(session, world.now, held.back()));
  }
  REQUIRE(world.bury(session, held.front()));
  world.facts();
  world.pass(20s);
  CHECK(world.facts().empty());
  CHECK(world.next_deadline() == Time(60s));
  CHECK(world.release(session, held.back()));
  CHECK(world.facts() == Lines{"removed 5"});
}

TEST_CASE("flushed jobs do not expire") {
  World world;
  for (int i = 0; i < 5; ++i) put_living(world, "t", 10);
  CHECK(world.engine.flush(world.now, "t", world.output) == 5);
  world.facts();
  world.pass(10s);
  CHECK(world.engine.info().expired_jobs == 0);
  CHECK(world.facts().empty());
  while (world.engine.has_removals(world.now)) {
    world.engine.remove_pending(world.now, world.output, world.output);
    world.engine.check_invariants();
  }
  CHECK(world.facts().size() == 5);
  CHECK(world.engine.info().memory_bytes == 0);
}

// --- Memory

TEST_CASE("what is noted about a job counts, and comes back") {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "1");
  set_value(world, "t", PolicyKey::ttl, "1000");
  const SessionId session = world.open("t");
  const JobId job = world.put(session);
  const std::uint64_t with_expiry = world.engine.info().memory_bytes;
  CHECK(with_expiry > JobMemory::cost_of(0));
  try_once(world, session, job);
  CHECK(world.engine.info().memory_bytes == with_expiry + 1);  // the name of the tube
  world.engine.kick_job(world.now, job, {}, world.output);
  CHECK(world.engine.info().memory_bytes == with_expiry);
  // Without the policies it has nothing noted but the start of its attempts.
  set_value(world, "t", PolicyKey::max_attempts, "-");
  set_value(world, "t", PolicyKey::ttl, "-");
  CHECK(world.engine.info().memory_bytes == with_expiry);
  world.remove(session, job);
  CHECK(world.engine.info().memory_bytes == 0);
}

TEST_CASE("a job that no longer expires needs no record") {
  World world;
  set_value(world, "t", PolicyKey::ttl, "1000");
  const SessionId session = world.open("t");
  const JobId job = world.put_and_hold(session);
  CHECK(world.engine.info().memory_bytes > JobMemory::cost_of(0));
  set_value(world, "t", PolicyKey::ttl, "-");
  world.release(session, job);
  CHECK(world.engine.info().memory_bytes == JobMemory::cost_of(0));
  CHECK(world.next_deadline() == kNever);
  world.remove(session, job);
  CHECK(world.engine.info().memory_bytes == 0);
}

TEST_CASE("a dead job whose mark has no memory is buried where it is") {
  World world;
  set_value(world, "t", PolicyKey::max_attempts, "1");
  set_value(world, "t", PolicyKey::dead, "d");
  const SessionId session = world.open("t");
  const JobId job = world.put_and_hold(session);
  Limits limits;
  limits.job_memory_bytes = world.engine.info().memory_bytes;
  world.engine.set_limits(limits);
  world.facts();
  world.release(session, job);
  CHECK(world.facts() == Lines{"placed 1: buried 0 order 0 reserves=1 releases=1 buries=1"});
  CHECK(world.engine.info().memory_bytes == limits.job_memory_bytes);
  CHECK_FALSE(world.has_tube("d"));
}

// --- Sessions that wait

TEST_CASE("a policy that is taken away gives the tube's jobs to waiting sessions") {
  World world;
  set_value(world, "t", PolicyKey::max_reserved, "1");
  const SessionId first = world.open("t");
  const SessionId second = world.open("t");
  world.put(first);
  world.put(first);
  CHECK(world.take(first) == 1);
  world.reserve(second);
  CHECK(world.notices().empty());
  set_value(world, "t", PolicyKey::max_reserved, "-");
  CHECK(world.notices() == Lines{"1 reserved 2 ''"});
}

TEST_CASE("a policy that is taken out of the settings gives the tubes' jobs to waiting sessions") {
  World world;
  world.engine.set_patterns(world.now, {all_tubes(PolicyKey::rate, "1/1000")}, world.output);
  std::vector<SessionId> sessions;
  for (const char* tube : {"a", "b"}) {
    sessions.push_back(world.open(tube));
    world.put(sessions.back());
    world.put(sessions.back());
    CHECK(world.take(sessions.back()) != 0);
    world.reserve(sessions.back());
  }
  CHECK(world.notices().empty());
  world.engine.set_patterns(world.now, {}, world.output);
  world.engine.check_invariants();
  CHECK(world.notices() == Lines{"0 reserved 2 ''", "1 reserved 4 ''"});
}

TEST_CASE("a tube at its rate wakes the next session when the rate allows it") {
  World world;
  set_value(world, "t", PolicyKey::rate, "2/10");
  const SessionId session = world.open("t");
  for (int i = 0; i < 4; ++i) world.put(session);
  CHECK(world.take(session) == 1);
  CHECK(world.take(session) == 2);
  CHECK(world.take(session) == 0);
  world.reserve(session);
  CHECK(world.next_deadline() == Time(5s));
  world.pass(4'999ms);
  CHECK(world.notices().empty());
  world.pass(1ms);
  CHECK(world.notices() == Lines{"0 reserved 3 ''"});
}

TEST_CASE("a rate that is shorter than a nanosecond for each job limits nothing") {
  World world;
  set_value(world, "t", PolicyKey::rate, "4294967295/1");
  const SessionId session = world.open("t");
  for (int i = 0; i < 100; ++i) world.put(session);
  for (JobId job = 1; job <= 100; ++job) CHECK(world.take(session) == job);
}

TEST_CASE("a job of a truncated tube counts as reserved until its holder deletes it") {
  World world;
  set_value(world, "t", PolicyKey::max_reserved, "1");
  const SessionId holder = world.open("t");
  const SessionId waiting = world.open("t");
  world.put_and_hold(holder);
  REQUIRE(world.engine.truncate(world.now, "t", world.output));
  world.put(holder);
  world.reserve(waiting);
  CHECK(world.notices().empty());
  CHECK(world.remove(holder, 1));
  CHECK(world.notices() == Lines{"1 reserved 2 ''"});
}

TEST_CASE("a closed session gives up its place among the reserved, also by a truncated job") {
  World world;
  set_value(world, "t", PolicyKey::max_reserved, "1");
  const SessionId holder = world.open("t");
  const SessionId waiting = world.open("t");
  world.put_and_hold(holder);
  REQUIRE(world.engine.truncate(world.now, "t", world.output));
  world.put(waiting);
  world.reserve(waiting);
  CHECK(world.notices().empty());
  world.close(holder);
  CHECK(world.notices() == Lines{"1 reserved 2 ''"});
}

TEST_CASE("a kept tube stays, and goes when the policy does") {
  World world;
  set_value(world, "t", PolicyKey::keep, "1");
  const SessionId session = world.open("t");
  world.close(session);
  CHECK(world.has_tube("t"));
  world.engine.set_patterns(world.now, {all_tubes(PolicyKey::keep, "1")}, world.output);
  set_value(world, "t", PolicyKey::keep, "-");
  CHECK(world.has_tube("t"));
  world.engine.set_patterns(world.now, {}, world.output);
  world.engine.check_invariants();
  CHECK_FALSE(world.has_tube("t"));
}

TEST_CASE("the metrics of a tube count the effects of its policy") {
  Limits limits;
  limits.tubes_with_metrics = 10;
  World world(limits);
  set_value(world, "t", PolicyKey::max_attempts, "1");
  set_value(world, "t", PolicyKey::rate, "1/10");
  const SessionId session = world.open("t");
  world.put_and_hold(session);
  put_living(world, "t", 5);
  world.release(session, 1);
  world.pass(5s);
  const TubeMetrics* metrics = nullptr;
  world.engine.queries().tube_metrics().visit_after("s", world.engine.limits(), world.now,
                                                    [&](const TubeMetrics& each, bool) {
                                                      if (each.name == "t") metrics = &each;
                                                      return metrics == nullptr;
                                                    });
  REQUIRE(metrics != nullptr);
  CHECK(metrics->dead_count == 1);
  CHECK(metrics->expired_count == 1);
  CHECK(metrics->rate_limited_count == 1);
}

}  // namespace tubed::engine
