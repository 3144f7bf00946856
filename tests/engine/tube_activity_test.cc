// TubeActivity: what is read of tubes, and that nothing is missed when tubes are removed.
#include "engine/tube_activity.h"

#include <map>

#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

namespace {

// Puts, reserves and deletes a job in the tube, which then is removed.
void use_once(World& world, std::string_view tube) {
  const SessionId session = world.open(tube);
  world.put(session);
  world.remove(session, world.take(session));
  world.close(session);
}

}  // namespace

TEST_CASE("a tube is read with its jobs and its counters") {
  World world;
  const SessionId session = world.open("a");
  world.put(session);
  world.put(session);
  world.take(session);
  TubeActivity& activity = world.engine.tube_activity();
  CHECK_FALSE(activity.find("none"));
  const auto found = activity.find("a");
  REQUIRE(found);
  CHECK(found->name == "a");
  CHECK(found->jobs.ready == 1);
  CHECK(found->jobs.reserved == 1);
  CHECK(found->total_jobs == 2);
  CHECK(found->reserve_count == 1);
  CHECK(found->delete_count == 0);
  CHECK(found->recent == 3);
  CHECK(activity.find("a")->recent == 3);
  CHECK(activity.totals().reserves == 1);
}

TEST_CASE("the totals have each reserve and delete once, also of tubes that were removed") {
  World world;
  TubeActivity& activity = world.engine.tube_activity();
  std::uint64_t done = 0;
  for (int round = 0; round < 10; ++round) {
    use_once(world, "a");
    use_once(world, "b");
    done += 2;
    CHECK(activity.totals().reserves == done);
    CHECK(activity.totals().deletes == done);
    const SessionId session = world.open("kept");
    world.put(session);
    world.remove(session, world.take(session));
    activity.find("kept");
    activity.find("kept");
    done += 1;
    CHECK(activity.totals().reserves == done);
    world.close(session);
    CHECK(activity.totals().reserves == done);
  }
}

TEST_CASE("a walk reads a bounded number of tubes at a time, and what was recent counts for less") {
  World world;
  for (int i = 0; i < 25; ++i) world.put(world.open("t" + std::to_string(i)));
  TubeActivity& activity = world.engine.tube_activity();
  for (const float expected : {1.0F, 0.5F, 0.25F}) {
    std::map<std::string, float> seen;
    std::uint64_t next = 0;
    int slices = 0;
    do {
      std::uint32_t visited = 0;
      const std::uint64_t walked = world.engine.entries_walked();
      next = activity.visit(next, 10, 0.5F, [&](const ActiveTube& tube) {
        seen[std::string(tube.name)] = tube.recent;
        ++visited;
      });
      CHECK(visited <= 10);
      CHECK(world.engine.entries_walked() - walked == visited);
      ++slices;
    } while (next != 0);
    CHECK(slices == 3);
    CHECK(seen.size() == 26);
    CHECK(seen.at("t7") == expected);
    CHECK(seen.at("default") == 0);
  }
  CHECK(activity.visit(1000, 10, 1, [](const ActiveTube&) { CHECK(false); }) == 0);
}

}  // namespace tubed::engine
