// Unique jobs: cases that the random lives of model_test.cc do not reach.
#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

namespace {

// The memory must be there.
PutResult put(World& world, std::string_view key, std::uint32_t cooldown = 0,
              std::string_view tube = kDefaultTube) {
  const JobTags tags{.unique_key = key, .cooldown = {cooldown}};
  REQUIRE(world.engine.memory().claim(tags_memory(tags)));
  const auto result = world.engine.put_with_tags(
      world.now, tube, {.priority = 0, .delay = {}, .ttr = {60}, .body = {}}, tags, world.output);
  world.engine.check_invariants();
  return result.value();
}

}  // namespace

TEST_CASE("a put and a delete of a unique job emit the key") {
  World world;
  const SessionId session = world.open();
  const JobId id = put(world, "k", 5).id;
  CHECK(world.facts() == Lines{"added 1 to default at 0s, ttr 60, no body: ready 0 idp:k:5"});
  CHECK(!put(world, "k").added);
  CHECK(world.facts().empty());
  world.remove(session, id);
  CHECK(world.facts() == Lines{"removed 1", "remembered 1 in default: k until 5s"});
  CHECK(!put(world, "k").added);
  CHECK(world.facts().empty());
}

TEST_CASE("a cooldown that has ended ends durably") {
  World world;
  const SessionId session = world.open();
  world.remove(session, put(world, "k", 5).id);
  world.remove(session, put(world, "l", 5).id);
  world.now += 5s;
  world.facts();
  CHECK(put(world, "k", 5).added);
  CHECK(world.facts() ==
        Lines{"removed 1", "added 3 to default at 5s, ttr 60, no body: ready 0 idp:k:5"});
  world.remove_pending();
  CHECK(world.facts() == Lines{"removed 2"});
  CHECK(!world.engine.has_removals(world.now));
}

TEST_CASE("a key counts until its cooldown has ended") {
  World world;
  const SessionId session = world.open();
  const std::string key(100, 'k');
  const JobId id = put(world, key, 5).id;
  const std::uint64_t with_job = world.engine.info().memory_bytes;
  CHECK(with_job > JobMemory::cost_of(0) + key.size());
  world.remove(session, id);
  const std::uint64_t with_cooldown = world.engine.info().memory_bytes;
  CHECK(with_cooldown > key.size());
  CHECK(with_cooldown < with_job - JobMemory::cost_of(0));
  put(world, key);
  CHECK(world.engine.info().memory_bytes ==
        with_cooldown);  // a put that adds nothing costs nothing
  world.now += 5s;
  world.remove_pending();
  CHECK(world.engine.info().memory_bytes == 0);
}

TEST_CASE("keys are flushed in slices") {
  World world;
  constexpr std::uint32_t kKeys = 2'000;
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    const std::string key = "key-" + std::to_string(i);
    const JobTags tags{.unique_key = key, .cooldown = {}};
    world.engine.memory().claim(tags_memory(tags));
    world.engine.put_with_tags(
        world.now, "t", {.priority = 0, .delay = {}, .ttr = {60}, .body = {}}, tags, world.output);
  }
  CHECK(world.engine.flush(world.now, "t", world.output) == kKeys);
  CHECK(put(world, "key-0", 0, "t").added);
  int slices = 0;
  for (; world.engine.has_removals(world.now); ++slices) {
    world.engine.remove_pending(world.now, world.output, world.output);
  }
  CHECK(slices == 2 * kKeys / (1'000 / 8));
  world.engine.check_invariants();
  CHECK(!put(world, "key-0", 0, "t").added);
}

// A salvaged journal may lack the removal of a job.
TEST_CASE("of two jobs with one key the newer one has it") {
  World world;
  const Added first{
      .id = 1, .tube = "t", .ttr = {60}, .created = {}, .body = {}, .place = {}, .counters = {}};
  Added second = first;
  second.id = 2;
  const JobTags tags{.unique_key = "k", .cooldown = {}};
  world.engine.replay(world.now, AddedWithTags{first, tags});
  world.engine.replay(world.now, AddedWithTags{second, tags});
  world.engine.check_invariants();
  CHECK(put(world, "k", 0, "t").id == 2);
  CHECK(world.job(1).tags == JobTags());
  CHECK(world.job(2).tags == tags);
}

TEST_CASE("a cooldown does not take the key of a newer job, nor of one that is back") {
  World world;
  const Added job{
      .id = 2, .tube = "t", .ttr = {60}, .created = {}, .body = {}, .place = {}, .counters = {}};
  world.engine.replay(world.now, AddedWithTags{job, {.unique_key = "k", .cooldown = {}}});
  for (const JobId id : {1U, 2U}) {
    world.engine.replay(world.now,
                        Remembered{.id = id, .tube = "t", .key = "k", .until = world.now + 5s});
    world.engine.check_invariants();
  }
  CHECK(put(world, "k", 0, "t").id == 2);
  CHECK(put(world, "k", 0, "t").state == JobState::ready);
  // The cooldown of an older job gives way to a newer job's.
  world.engine.replay(world.now,
                      Remembered{.id = 3, .tube = "u", .key = "k", .until = world.now + 5s});
  world.engine.replay(world.now,
                      Remembered{.id = 4, .tube = "u", .key = "k", .until = world.now + 7s});
  world.engine.check_invariants();
  CHECK(put(world, "k", 0, "u").id == 4);
}

}  // namespace tubed::engine
