// Concurrency keys: cases that the random lives of model_test.cc do not reach.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

namespace {

// Without a check of all invariants, which would make many puts slow.
JobId put_keyed_unchecked(World& world, std::string_view key, std::uint32_t limit = 1,
                          std::string_view tube = kDefaultTube, Priority priority = 0) {
  const JobTags tags{.concurrency_key = key, .concurrency_limit = limit};
  REQUIRE(world.engine.memory().claim(tags_memory(tags)));
  const auto result = world.engine.put_with_tags(
      world.now, tube, {.priority = priority, .delay = {}, .ttr = {60}, .body = {}}, tags,
      world.output);
  return result.value().id;
}

JobId put_keyed(World& world, std::string_view key, std::uint32_t limit = 1,
                std::string_view tube = kDefaultTube, Priority priority = 0) {
  const JobId id = put_keyed_unchecked(world, key, limit, tube, priority);
  world.engine.check_invariants();
  return id;
}

}  // namespace

// --- Facts and replay

TEST_CASE("a put emits the key and its limit, and neither a block nor its end is a fact") {
  World world;
  const SessionId session = world.open();
  const JobId first = put_keyed(world, "k");
  put_keyed(world, "k", 3);
  CHECK(world.facts() == Lines{"added 1 to default at 0s, ttr 60, no body: ready 0 con:k:1",
                               "added 2 to default at 0s, ttr 60, no body: ready 0 con:k:3"});
  CHECK(world.take(session) == first);
  CHECK(world.take(session) == 0);
  CHECK(world.facts().empty());
  world.remove(session, first);
  CHECK(world.facts() == Lines{"removed 1"});
  CHECK(world.take(session) == 2);
}

TEST_CASE("a replay knows the keys and their limits, and that no job is reserved") {
  World world;
  const SessionId session = world.open();
  for (int i = 0; i < 3; ++i) put_keyed(world, "k", 2);
  CHECK(world.take(session) == 1);
  CHECK(world.take(session) == 2);
  CHECK(world.take(session) == 0);
  CHECK(world.engine.info().concurrency_keys == 1);
  World again;
  again.restore(world);
  CHECK(again.engine.info().concurrency_keys == 0);
  CHECK(again.engine.info().memory_bytes == world.engine.info().memory_bytes);
  const SessionId other = again.open();
  CHECK(again.take(other) == 1);
  CHECK(again.take(other) == 2);
  CHECK(again.take(other) == 0);
  CHECK(again.job(3).tags == JobTags{.concurrency_key = "k", .concurrency_limit = 2});
}

// --- The limit

TEST_CASE("the smallest limit of all jobs of the key is in force, in whatever state they are") {
  World world;
  const SessionId session = world.open();
  for (int i = 0; i < 4; ++i) put_keyed(world, "k", 3, "t");
  const JobId strict = put_keyed(world, "k", 1);
  world.engine.reserve_job(session, world.now, strict);
  world.bury(session, strict);
  const SessionId worker = world.open("t");
  CHECK(world.take(worker) == 1);
  CHECK(world.take(worker) == 0);
  world.remove(session, strict);
  CHECK(world.take(worker) == 2);
  CHECK(world.take(worker) == 3);
  CHECK(world.take(worker) == 0);
}

TEST_CASE("a smaller limit takes no job from its client, and hides the exposed job") {
  World world;
  const SessionId session = world.open();
  for (int i = 0; i < 3; ++i) put_keyed(world, "k", 5);
  CHECK(world.take(session) == 1);
  CHECK(world.take(session) == 2);
  const JobId strict = put_keyed(world, "k", 1, "other");
  CHECK(world.take(session) == 0);
  world.remove(session, 1);
  CHECK(world.take(session) == 0);
  world.remove(session, 2);
  CHECK(world.take(session) == 3);
  world.remove(session, strict);
}

TEST_CASE("room that a deleted limit makes is for a client that waits") {
  World world;
  const SessionId session = world.open();
  const SessionId worker = world.open("t");
  put_keyed(world, "k", 2, "t");
  put_keyed(world, "k", 2, "t");
  const JobId strict = put_keyed(world, "k", 1);
  CHECK(world.take(worker) == 1);
  world.reserve(worker);
  CHECK(world.notices().empty());
  world.remove(session, strict);
  CHECK(world.notices() == Lines{"1 reserved 2 no body"});
}

TEST_CASE("the limit of a flushed job counts until it is freed") {
  World world;
  const SessionId worker = world.open("t");
  put_keyed(world, "k", 2, "t");
  put_keyed(world, "k", 2, "t");
  put_keyed(world, "k", 1, "flushed");
  CHECK(world.take(worker) == 1);
  world.reserve(worker);
  world.engine.flush(world.now, "flushed", world.output);
  world.engine.check_invariants();
  CHECK(world.notices().empty());
  world.remove_pending();
  CHECK(world.notices() == Lines{"0 reserved 2 no body"});
}

TEST_CASE("a flush takes the place of a reserved job at once") {
  World world;
  const SessionId holder = world.open("flushed");
  const SessionId worker = world.open("t");
  put_keyed(world, "k", 1, "flushed");
  put_keyed(world, "k", 1, "t");
  CHECK(world.take(holder) == 1);
  world.reserve(worker);
  CHECK(world.notices().empty());
  world.engine.flush(world.now, "flushed", world.output);
  world.engine.check_invariants();
  CHECK(world.notices() == Lines{"1 reserved 2 no body"});
  world.remove_pending();
}

// --- Which job is exposed

TEST_CASE("of a key the first job by priority and id is given, in each tube") {
  World world;
  const SessionId session = world.open();
  put_keyed(world, "k", 1, kDefaultTube, 5);
  put_keyed(world, "k", 1, kDefaultTube, 3);
  put_keyed(world, "l", 1, kDefaultTube, 4);
  put_keyed(world, "k", 1, kDefaultTube, 3);
  for (const JobId expected : {2U, 3U}) CHECK(world.take(session) == expected);
  CHECK(world.take(session) == 0);
  CHECK(world.engine.queries().peek_ready(session)->id == 4);  // the first that is parked
  world.remove(session, 2);
  CHECK(world.take(session) == 4);
  world.release(session, 4, 9);
  CHECK(world.take(session) == 1);
  CHECK(world.tube(kDefaultTube).jobs.ready == 1);
  CHECK(world.tube(kDefaultTube).jobs.urgent == 1);
}

TEST_CASE("a change of priority and a move expose the right jobs") {
  World world;
  const SessionId session = world.open();
  const SessionId other = world.open("other");
  for (const Priority priority : {5U, 6U, 7U}) put_keyed(world, "k", 1, kDefaultTube, priority);
  world.engine.tube_moves().reprioritize(3, 1, world.output);
  world.engine.check_invariants();
  CHECK(world.engine.queries().peek_ready(session)->id == 3);
  world.engine.tube_moves().move(session, world.now, 3, "other", {}, world.output);
  world.engine.check_invariants();
  CHECK(world.engine.queries().peek_ready(session)->id == 1);
  CHECK(world.take(other) == 3);
  CHECK(world.take(session) == 0);
  world.remove(other, 3);
  CHECK(world.take(session) == 1);
}

TEST_CASE("a paused tube does not keep the place of a key from other tubes") {
  World world;
  const SessionId paused = world.open("p");
  const SessionId worker = world.open("t");
  put_keyed(world, "k", 1, "p");
  put_keyed(world, "k", 1, "t");
  world.pause("p", 10);
  CHECK(world.take(paused) == 0);
  CHECK(world.take(worker) == 2);
  world.pass(10s);
  CHECK(world.take(paused) == 0);
  world.remove(worker, 2);
  CHECK(world.take(paused) == 1);
}

TEST_CASE("each way of giving a job back gives its place to a client that waits") {
  World world;
  const SessionId holder = world.open();
  const SessionId worker = world.open();
  const JobId first = put_keyed(world, "k", 1, kDefaultTube, 0);
  const JobId second = put_keyed(world, "k", 1, kDefaultTube, 1);
  const std::string given = "1 reserved " + std::to_string(second) + " no body";
  const auto hold_and_wait = [&] {
    REQUIRE(world.take(holder) == first);
    world.reserve(worker);
    REQUIRE(world.notices().empty());
  };
  const auto give_back = [&] {
    CHECK(world.notices() == Lines{given});
    world.release(worker, second, 1);
  };
  hold_and_wait();
  world.release(holder, first, 2);
  give_back();
  world.engine.tube_moves().reprioritize(first, 0, world.output);
  hold_and_wait();
  world.release(holder, first, 0, 5);
  give_back();
  world.pass(5s);
  hold_and_wait();
  world.bury(holder, first);
  give_back();
  world.kick(holder, 1);
  hold_and_wait();
  world.pass(60s);
  CHECK(world.notices() == Lines{"1 reserved 1 no body"});  // which is the first again
  world.release(worker, first);
  hold_and_wait();
  world.close(holder);
  CHECK(world.notices() == Lines{"1 reserved 1 no body"});
  world.release(worker, first);
  const SessionId next = world.open();
  REQUIRE(world.take(next) == first);
  world.reserve(worker);
  world.remove(next, first);
  give_back();
}

// --- Memory and cost

TEST_CASE("the memory of keys comes back, also of flushed jobs") {
  World world;
  const SessionId session = world.open();
  const std::string key(200, 'k');
  const JobId job = put_keyed(world, key);
  CHECK(world.engine.info().memory_bytes > JobMemory::cost_of(0) + key.size());
  world.remove(session, job);
  CHECK(world.engine.info().memory_bytes == 0);
  for (int i = 0; i < 5; ++i) put_keyed(world, key, 2);
  CHECK(world.take(session) > 0);
  CHECK(world.engine.flush(world.now, kDefaultTube, world.output) == 5);
  CHECK(world.engine.info().concurrency_keys == 0);
  world.remove_pending();
  CHECK(world.engine.info().memory_bytes == 0);
}

TEST_CASE("many jobs that are blocked hold up no other job") {
  World world;
  constexpr int kBlocked = 100'000;
  const SessionId holder = world.engine.open();
  const auto reserve = [&](SessionId session) {
    return world.engine.reserve(session, world.now, {.limit = 0s});
  };
  for (int i = 0; i < kBlocked; ++i) put_keyed_unchecked(world, "k");
  CHECK(reserve(holder)->job == 1);
  const std::uint64_t walked = world.engine.entries_walked();
  CHECK(reserve(holder)->kind == Notice::Kind::timed_out);
  CHECK(world.engine.entries_walked() == walked + 1);
  CHECK(world.engine.queries().peek_ready(holder)->id == 2);
  CHECK(world.engine.info().jobs.ready == kBlocked - 1);
  // Of the same tube, although all others come before it.
  const JobId late = put_keyed_unchecked(world, "l", 1, kDefaultTube, 9);
  CHECK(reserve(holder)->job == late);
  CHECK(world.engine.entries_walked() == walked + 2);
  // Of another tube.
  const SessionId other = world.engine.open();
  world.engine.use(other, world.now, "other");
  world.engine.watch(other, world.now, "other");
  const JobId job = put_keyed_unchecked(world, "m", 1, "other");
  const std::uint64_t before = world.engine.entries_walked();
  CHECK(reserve(other)->job == job);
  CHECK(world.engine.entries_walked() == before + 2);
  // The place goes to the next.
  world.engine.remove(holder, world.now, 1, world.output);
  CHECK(reserve(other)->job == 2);
  CHECK(world.engine.flush(world.now, kDefaultTube, world.output) == kBlocked);
  while (world.engine.has_removals(world.now)) {
    world.engine.remove_pending(world.now, world.output, world.output);
  }
}

// --- Keys in very many tubes

namespace {

// A world in which each key is wide.
struct WideWorld : World {
  explicit WideWorld(std::uint32_t short_watch_list = 256)
      : World({.work_per_turn = 1, .short_watch_list = short_watch_list}) {}
};

// How many entries a reserve, a release, a reserve and a close walk while a key has a job in each
// of so many tubes.
std::uint64_t walked_with_tubes(int tubes) {
  World world;
  for (int i = 0; i < tubes; ++i) put_keyed_unchecked(world, "k", 1, "t" + std::to_string(i));
  const SessionId worker = world.engine.open();
  world.engine.watch(worker, world.now, "t0");
  world.engine.ignore(worker, world.now, kDefaultTube);
  const auto cycle = [&] {
    REQUIRE(world.engine.reserve(worker, world.now, {.limit = 0s})->job == 1);
    REQUIRE(world.engine.reserve(worker, world.now, {.limit = 0s})->kind ==
            Notice::Kind::timed_out);
    world.engine.release(worker, world.now, 1, 0, {}, world.output);
  };
  const std::uint64_t before = world.engine.entries_walked();
  cycle();
  cycle();
  REQUIRE(world.engine.reserve(worker, world.now, {.limit = 0s})->job == 1);
  world.engine.close(worker, world.now, world.output);
  return world.engine.entries_walked() - before;
}

}  // namespace

TEST_CASE("a key in very many tubes costs no more than one in a few") {
  CHECK(walked_with_tubes(20'000) == walked_with_tubes(100));
  CHECK(walked_with_tubes(20'000) < walked_with_tubes(15));
}

TEST_CASE("a job that is put while its wide key has no room costs the next release nothing") {
  World world;
  const SessionId worker = world.engine.open();
  put_keyed_unchecked(world, "k");
  REQUIRE(world.engine.reserve(worker, world.now, {})->job == 1);
  for (int i = 0; i < 5'000; ++i) put_keyed_unchecked(world, "k", 1, "t" + std::to_string(i));
  const std::uint64_t before = world.engine.entries_walked();
  world.engine.release(worker, world.now, 1, 0, {}, world.output);
  CHECK(world.engine.entries_walked() - before < 40);
  world.engine.check_invariants();
}

TEST_CASE("of very many tubes with a wide key those are looked at in which a session waits") {
  World world;
  const SessionId holder = world.engine.open();
  put_keyed_unchecked(world, "k");
  for (int i = 0; i < 5'000; ++i) put_keyed_unchecked(world, "k", 1, "t" + std::to_string(i));
  REQUIRE(world.engine.reserve(holder, world.now, {})->job == 1);
  std::vector<SessionId> waiting;
  for (const char* const tube : {"t7", "t3000", "t4999"}) {
    waiting.push_back(world.open(tube));
    world.reserve(waiting.back());
  }
  CHECK(world.notices().empty());
  std::uint64_t before = world.engine.entries_walked();
  world.remove(holder, 1);
  CHECK(world.notices() == Lines{"1 reserved 9 no body"});
  CHECK(world.engine.entries_walked() - before < 40);
  before = world.engine.entries_walked();
  world.close(waiting[0]);
  CHECK(world.notices() == Lines{"2 reserved 3002 no body"});
  CHECK(world.engine.entries_walked() - before < 40);
  world.remove(waiting[1], 3002);
  CHECK(world.notices() == Lines{"3 reserved 5001 no body"});
}

TEST_CASE("a job of a wide key without room is neither given nor shown as the next") {
  for (const std::uint32_t short_list : {1U, 256U}) {
    for (const ReserveMode mode : {ReserveMode::fifo, ReserveMode::weighted}) {
      WideWorld world(short_list);
      const SessionId worker = world.open();
      world.engine.watch(worker, world.now, "t");
      world.engine.watch(worker, world.now, "u");
      world.engine.set_mode(worker, mode);
      const SessionId other = world.open("u");
      put_keyed(world, "k", 1, "t", 1);
      put_keyed(world, "l", 1, "t", 2);
      const JobId plain = world.put(world.open("t"), {.priority = 3});
      put_keyed(world, "k", 1, "u", 0);
      put_keyed(world, "l", 1, "u", 1);
      CHECK(world.take(other) == 4);
      CHECK(world.take(other) == 5);
      // Both keys have exposed jobs in t.
      CHECK(world.tube("t").next_ready_id == plain);
      CHECK(world.engine.queries().next_jobs("t", 2).jobs == std::vector<JobId>{plain});
      CHECK(world.tube("t").jobs.ready == 3);
      CHECK(world.take(worker) == plain);
      CHECK(world.tube("t").next_ready_id == 1);  // of the jobs that are blocked
      CHECK(world.engine.queries().next_jobs("t", 2).jobs.empty());
      CHECK(world.take(worker) == 0);
      world.remove(other, 5);
      CHECK(world.take(worker) == 2);
      CHECK(world.take(worker) == 0);
      world.close(other);
      CHECK(world.take(worker) > 0);
    }
  }
}

TEST_CASE("flushes and moves of a tube take the jobs of wide keys in their order") {
  const auto filled = [](WideWorld& world) {
    const SessionId holder = world.open("u");
    for (const char* const key : {"k", "l"}) {
      put_keyed(world, key, 1, "t");
      put_keyed(world, key, 1, "t");
      put_keyed(world, key, 1, "u");
      CHECK(world.take(holder) > 0);
    }
    world.put(world.open("t"), {.priority = 9});  // 7
    world.facts();
    return holder;
  };
  {
    WideWorld world;
    filled(world);
    Slices move = world.engine.queries().slices("t", JobState::ready, 2);
    while (move.left > 0) {
      CHECK(world.engine.tube_moves().move_slice(world.now, move, "v", world.output));
      world.engine.check_invariants();
    }
    CHECK(world.facts() == Lines{"moved 7 to v", "moved 1 to v"});
  }
  {
    WideWorld world;
    const SessionId holder = filled(world);
    Slices flush = world.engine.queries().slices("t", JobState::ready, 3);
    while (flush.left > 0) {
      world.engine.flush_slice(world.now, flush, world.output, world.output);
      world.engine.check_invariants();
    }
    CHECK(world.facts() == Lines{"removed 7", "removed 1", "removed 2"});
    world.close(holder);
    world.pass(0s);
    CHECK(world.take(world.open("t")) == 4);
  }
  {
    WideWorld world;
    const SessionId holder = filled(world);
    CHECK(world.engine.flush(world.now, "t", world.output) == 5);
    world.engine.check_invariants();
    world.close(holder);
    world.pass(0s);
    world.remove_pending();
    CHECK(world.engine.info().jobs.ready == 2);
  }
}

TEST_CASE("the end of a pause gives no job of a wide key without room") {
  WideWorld world;
  const SessionId holder = world.open("u");
  const SessionId worker = world.open("t");
  put_keyed(world, "k", 1, "u");
  put_keyed(world, "k", 1, "t");
  world.pause("t", 10);
  world.reserve(worker);
  CHECK(world.take(holder) == 1);
  world.pass(10s);
  CHECK(world.notices().empty());
  world.remove(holder, 1);
  CHECK(world.notices() == Lines{"1 reserved 2 no body"});
}

TEST_CASE("a batch ends where the key has no more room") {
  World world;
  const SessionId session = world.open();
  for (int i = 0; i < 5; ++i) put_keyed(world, "k", 2);
  JobId last = 0;
  int given = 0;
  for (JobId job = world.take(session); job > 0; job = world.take(session), ++given) last = job;
  CHECK(given == 2);
  CHECK(last == 2);
  CHECK_FALSE(world.engine.reserve_job(session, world.now, 3));
  world.close(session);
  CHECK(world.engine.info().concurrency_keys == 0);
}

}  // namespace tubed::engine
