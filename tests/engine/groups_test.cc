// Groups: cases that the random lives of model_test.cc do not reach.
#include <doctest/doctest.h>

#include "engine/replay.h"
#include "tests/engine/world.h"

namespace tubed::engine {

namespace {

constexpr JobTags kMember{.group = "g"};
constexpr JobTags kWaits{.after = "g"};

// Without a check of all invariants, which would make many puts slow.
JobId put_grouped_unchecked(World& world, const JobTags& tags, Seconds delay = {},
                            std::string_view tube = kDefaultTube) {
  REQUIRE(world.engine.memory().claim(tags_memory(tags)));
  const auto result = world.engine.put_with_tags(
      world.now, tube, {.priority = 0, .delay = {delay}, .ttr = {60}, .body = {}}, tags,
      world.output);
  return result.value().id;
}

JobId put_grouped(World& world, const JobTags& tags, Seconds delay = {},
                  std::string_view tube = kDefaultTube) {
  const JobId id = put_grouped_unchecked(world, tags, delay, tube);
  world.engine.check_invariants();
  return id;
}

bool is_held(const World& world, JobId id) {
  const JobInfo job = world.job(id);
  CHECK((!job.held || job.state == JobState::delayed));
  return job.held;
}

// The same durable state after a restart, at this time.
void restart(const Recording& log, World& world, Time now) {
  world.now = now;
  Replay replay(world.engine, now);
  for (const RecordedFact& kept : log.log()) replay.fact(kept.fact());
  world.engine.check_invariants();
  world.engine.end_replay();
  world.engine.check_invariants();
}

// Job 1, in the tube t.
Added held_job() {
  return {.id = 1,
          .tube = "t",
          .ttr = {60},
          .created = {},
          .body = {},
          .place = {.state = JobState::delayed, .priority = 0, .delay = {}, .until = kNever},
          .counters = {}};
}

}  // namespace

// --- Facts

TEST_CASE("a job that waits for a group is added held, and its release emits its place") {
  World world;
  const SessionId session = world.open();
  const JobId member = put_grouped(world, kMember);
  put_grouped(world, kWaits);
  CHECK(world.facts() ==
        Lines{"added 1 to default at 0s, ttr 60, no body: ready 0 grp:g",
              "added 2 to default at 0s, ttr 60, no body: delayed 0 until never aft:g"});
  world.remove(session, member);
  CHECK(world.facts() == Lines{"removed 1", "placed 2: ready 0 after-done"});
  CHECK(world.state(2) == JobState::ready);
}

TEST_CASE("a job that waits for a group without members is added with its wait done") {
  World world;
  put_grouped(world, kWaits);
  CHECK(world.facts() ==
        Lines{"added 1 to default at 0s, ttr 60, no body: ready 0 aft:g after-done"});
}

TEST_CASE("the end of the delay of a job that waits for a group emits where it rests then") {
  World world;
  const SessionId session = world.open();
  const JobId member = put_grouped(world, kMember);
  const JobId job = put_grouped(world, kWaits, {5});
  const JobId other = put_grouped(world, {.after = "h"}, {5});
  CHECK_FALSE(is_held(world, job));
  world.facts();
  world.pass(5s);
  CHECK(world.facts() ==
        Lines{"placed 2: delayed 0 delay 5 until never", "placed 3: ready 0 delay 5 after-done"});
  CHECK(is_held(world, job));
  CHECK(world.state(other) == JobState::ready);
  CHECK(world.next_deadline() == kNever);
  world.remove(session, member);
  CHECK(world.facts() == Lines{"removed 1", "placed 2: ready 0 delay 5 after-done"});
}

TEST_CASE("a kick of a held job emits that it waits no more, also with a delay") {
  World world;
  put_grouped(world, kMember);
  const JobId first = put_grouped(world, kWaits);
  const JobId second = put_grouped(world, kWaits);
  world.facts();
  world.engine.kick_job(world.now, first, {}, world.output);
  world.engine.kick_job(world.now, second, {{7}}, world.output);
  world.engine.check_invariants();
  CHECK(world.facts() == Lines{"placed 2: ready 0 kicks=1 after-done",
                               "placed 3: delayed 0 delay 7 until 7s kicks=1 after-done"});
  world.pass(7s);
  CHECK(world.state(second) == JobState::ready);
  CHECK(world.engine.queries().group_info("g")->held == 0);
}

TEST_CASE("a job that was ready once keeps its mark and is not held again") {
  World world;
  const SessionId session = world.open();
  const JobId job = put_grouped(world, kWaits);
  world.engine.reserve_job(session, world.now, job);
  put_grouped(world, kMember);
  world.facts();
  world.release(session, job, 0, 3);
  CHECK(world.facts() ==
        Lines{"placed 1: delayed 0 delay 3 until 3s reserves=1 releases=1 after-done"});
  world.pass(3s);
  CHECK(world.state(job) == JobState::ready);
}

TEST_CASE("a deleted job is released by no group") {
  World world;
  const SessionId session = world.open();
  const JobId member = put_grouped(world, kMember);
  const JobId job = put_grouped(world, kWaits);
  world.remove(session, job);
  CHECK(world.engine.queries().group_info("g")->held == 0);
  world.facts();
  world.remove(session, member);
  CHECK(world.facts() == Lines{"removed 1"});
  CHECK_FALSE(world.engine.queries().group_info("g"));
}

// --- Replay

TEST_CASE("a replay holds what was held, and knows the group") {
  World world;
  const SessionId session = world.open();
  put_grouped(world, kMember, {}, "a");
  world.bury(session, put_grouped(world, kMember, {9}, "b"));
  put_grouped(world, kWaits);
  put_grouped(world, kWaits, {5});
  world.pass(5s);
  World again;
  restart(world.output, again, world.now);
  CHECK(is_held(again, 3));
  CHECK(is_held(again, 4));
  CHECK(again.engine.info().jobs.held == 2);
  const GroupInfo group = again.engine.queries().group_info("g").value();
  CHECK(group.members.total() == 2);
  CHECK(group.held == 2);
  const SessionId other = again.open();
  again.remove(other, 1);
  CHECK(is_held(again, 3));
  again.remove(other, 2);
  CHECK(again.state(3) == JobState::ready);
  CHECK(again.state(4) == JobState::ready);
}

TEST_CASE("a replay releases a held job whose group has no members") {
  World world;
  world.engine.replay(world.now, AddedWithTags{held_job(), kWaits});
  world.engine.check_invariants();
  world.engine.end_replay();
  world.engine.check_invariants();
  CHECK(world.next_deadline() <= world.now);
  const SessionId session = world.open("t");
  world.reserve(session);
  world.pass(0s);
  CHECK(world.facts() == Lines{"placed 1: ready 0 after-done"});
  CHECK(world.notices() == Lines{"0 reserved 1 no body"});
}

TEST_CASE("a replay that is not ended is ended by the first session") {
  World world;
  const SessionId session = world.open();
  const JobId member = put_grouped(world, kMember);
  put_grouped(world, kWaits);
  world.remove(session, member);
  // A crash after the removal of the member.
  Engine again{Limits()};
  std::size_t left = world.output.log().size() - 1;
  for (const RecordedFact& kept : world.output.log()) {
    if (left-- > 0) again.replay(world.now, kept.fact());
  }
  again.open();
  again.check_invariants();
  Recording output;
  again.advance(world.now, output);
  CHECK(output.take_facts() == Lines{"placed 2: ready 0 after-done"});
}

TEST_CASE("facts may name a job that waits before the members, as compaction does") {
  World world;
  const Added held = held_job();
  Added member = held;
  member.id = 2;
  member.place = {};
  world.engine.replay(world.now, AddedWithTags{held, kWaits});
  world.engine.replay(world.now, AddedWithTags{member, kMember});
  world.engine.end_replay();
  world.engine.check_invariants();
  world.pass(0s);
  CHECK(is_held(world, 1));
}

TEST_CASE("a delay that has ended before the replay holds the job then") {
  World world;
  put_grouped(world, kMember);
  put_grouped(world, kWaits, {5});
  put_grouped(world, {.after = "h"}, {5});
  World again;
  restart(world.output, again, world.now + 10s);
  again.pass(0s);
  CHECK(is_held(again, 2));
  CHECK(again.state(3) == JobState::ready);
  CHECK(again.facts() ==
        Lines{"placed 2: delayed 0 delay 5 until never", "placed 3: ready 0 delay 5 after-done"});
}

TEST_CASE("the durable list gives groups and held jobs again") {
  World world;
  put_grouped(world, kMember);
  put_grouped(world, kWaits);
  put_grouped(world, {.group = "h", .after = "g"});
  Recording list;
  world.engine.durable_state().visit(world.now, list);
  CHECK(list.take_facts() ==
        Lines{"added 1 to default at 0s, ttr 60, no body: ready 0 grp:g",
              "added 2 to default at 0s, ttr 60, no body: delayed 0 until never aft:g",
              "added 3 to default at 0s, ttr 60, no body: delayed 0 until never grp:h aft:g"});
  world.engine.durable_state().describe(world.now, 2, list);
  CHECK(list.take_facts() ==
        Lines{"added 2 to default at 0s, ttr 60, no body: delayed 0 until never aft:g"});
}

// --- Slices

TEST_CASE("a complete group releases its jobs in slices, in the order of their holding") {
  World world({.work_per_turn = 4});
  const SessionId session = world.open();
  const JobId member = put_grouped(world, kMember);
  for (int i = 0; i < 10; ++i) put_grouped(world, kWaits);
  world.facts();
  world.remove(session, member);
  CHECK(world.facts() == Lines{"removed 1", "placed 2: ready 0 after-done",
                               "placed 3: ready 0 after-done", "placed 4: ready 0 after-done",
                               "placed 5: ready 0 after-done"});
  CHECK(world.engine.info().jobs.held == 6);
  CHECK(world.next_deadline() <= world.now);
  CHECK_FALSE(world.engine.queries().group_info("g"));
  // The name may be used again meanwhile, for another group.
  put_grouped(world, kMember);
  const JobId waits = put_grouped(world, kWaits);
  world.pass(0s);
  CHECK(world.engine.info().jobs.held == 1);
  CHECK(is_held(world, waits));
  CHECK(world.next_deadline() == kNever);
}

TEST_CASE("jobs of a complete group may be deleted and kicked before they are released") {
  World world({.work_per_turn = 1});
  const SessionId session = world.open();
  const JobId member = put_grouped(world, kMember);
  for (int i = 0; i < 5; ++i) put_grouped(world, kWaits);
  world.remove(session, member);
  world.remove(session, 4);
  world.engine.kick_job(world.now, 6, {}, world.output);
  world.engine.check_invariants();
  world.pass(0s);
  for (const JobId id : {2U, 3U, 5U, 6U}) CHECK(world.state(id) == JobState::ready);
  CHECK(world.engine.info().jobs.held == 0);
}

TEST_CASE("flushed members count until they are freed, in slices") {
  World world({.work_per_turn = 16});
  const SessionId session = world.open();
  for (int i = 0; i < 5; ++i) put_grouped(world, kMember, {}, "t");
  const JobId job = put_grouped(world, kWaits);
  world.reserve(session);
  CHECK(world.engine.flush(world.now, "t", world.output) == 5);
  world.engine.check_invariants();
  CHECK(is_held(world, job));
  CHECK(world.engine.queries().group_info("g")->members.total() == 5);
  world.engine.remove_pending(world.now, world.output, world.output);
  CHECK(world.engine.queries().group_info("g")->members.total() == 3);
  CHECK(world.notices().empty());
  world.remove_pending();
  CHECK(world.notices() == Lines{"0 reserved 6 no body"});
}

TEST_CASE("a flushed job that is held is not released") {
  World world;
  const SessionId session = world.open();
  const JobId member = put_grouped(world, kMember);
  for (int i = 0; i < 3; ++i) put_grouped(world, kWaits, {}, "t");
  CHECK(world.engine.flush(world.now, "t", world.output) == 3);
  CHECK(world.engine.info().jobs.held == 0);
  world.facts();
  world.remove(session, member);
  world.pass(0s);
  CHECK(world.facts() == Lines{"removed 1"});
  world.remove_pending();
  CHECK(world.facts().size() == 3);
  CHECK(world.engine.info().memory_bytes == 0);
}

// --- Memory and cost

TEST_CASE("the memory of groups comes back") {
  World world;
  const SessionId session = world.open();
  const std::string name(200, 'g');
  const JobId member = put_grouped(world, {.group = name});
  const std::uint64_t with_member = world.engine.info().memory_bytes;
  CHECK(with_member > JobMemory::cost_of(0) + name.size());
  const JobId job = put_grouped(world, {.group = "h", .after = name});
  CHECK(world.engine.info().memory_bytes > with_member + JobMemory::cost_of(0) + name.size());
  world.remove(session, member);
  world.remove(session, job);
  CHECK(world.engine.info().memory_bytes == 0);
}

TEST_CASE("a group without members ends with the jobs that it holds") {
  World world;
  const SessionId session = world.open();
  const JobId member = put_grouped(world, kMember);
  const JobId job = put_grouped(world, kWaits);
  world.engine.kick_job(world.now, job, {}, world.output);
  world.remove(session, member);
  CHECK_FALSE(world.engine.queries().group_info("g"));
  world.remove(session, job);
  CHECK(world.engine.info().memory_bytes == 0);
}

TEST_CASE("held jobs come after all delayed jobs of their tube") {
  World world;
  const SessionId session = world.open();
  put_grouped(world, kMember, {}, "other");
  for (int i = 0; i < 3; ++i) put_grouped(world, kWaits);
  CHECK_FALSE(world.engine.queries().peek_delayed(session));
  CHECK(world.kick(session, 10) == 0);
  const JobId delayed = world.put(session, {.delay = 5});
  CHECK(world.engine.queries().peek_delayed(session)->id == delayed);
  CHECK(world.kick(session, 10) == 1);
  CHECK(world.tube(kDefaultTube).jobs.held == 3);
  CHECK(world.tube(kDefaultTube).jobs.delayed == 3);
}

TEST_CASE("many held jobs cost a put, a reserve and the time nothing") {
  World world;
  const SessionId session = world.engine.open();
  put_grouped_unchecked(world, kMember, {}, "other");
  for (int i = 0; i < 100'000; ++i) put_grouped_unchecked(world, kWaits);
  CHECK(world.next_deadline() == kNever);
  const std::uint64_t walked = world.engine.entries_walked();
  CHECK_FALSE(world.engine.queries().peek_delayed(session));
  world.engine.memory().claim(0);
  const JobId job = world.engine.put(
      session, world.now, {.priority = 0, .delay = {}, .ttr = {60}, .body = {}}, world.output);
  const auto given = world.engine.reserve(session, world.now, {.limit = 0s});
  CHECK(given->job == job);
  CHECK(world.engine.entries_walked() == walked + 1);
}

}  // namespace tubed::engine
