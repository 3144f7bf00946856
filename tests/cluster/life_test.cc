// Lives of simulated clusters (world.h).
//
// TUBED_LIVES sets their number, TUBED_LIFE_SEED the first seed, to repeat a life. With
// TUBED_LIFE_TRACE the story of a failing life includes what clients send and receive.
#include <cstdio>
#include <cstdlib>

#include <doctest/doctest.h>

#include "tests/cluster/world.h"
#include "tests/journal/crashes.h"
#include "tests/share.h"

namespace tubed::cluster_test {

using namespace std::chrono_literals;
using journal::number_from;

TEST_CASE("a cluster keeps its promises, whatever fails") {
  const std::uint64_t lives = number_from("TUBED_LIVES", 300);
  const std::uint64_t first = number_from("TUBED_LIFE_SEED", 1);
  const bool trace = std::getenv("TUBED_LIFE_TRACE") != nullptr;
  LifeCounts counts;
  for (std::uint64_t seed = first; seed < first + lives; ++seed) {
    Nature nature = some_nature(seed);
    nature.trace = trace;
    World world(nature);
    if (world.live()) FAIL(world.story());
    counts += world.counts();
  }
  std::printf(
      "%llu lives: %llu events, %llu entries committed, %llu leaders, %llu crashes, %llu fetches, "
      "%llu puts, %llu reserves, %llu deletes, %llu held over, %llu comparisons, %llu changes of "
      "members, %llu hand-overs, %llu lost disks, %llu joins, %llu rises of the level\n",
      static_cast<unsigned long long>(lives), static_cast<unsigned long long>(counts.events),
      static_cast<unsigned long long>(counts.committed),
      static_cast<unsigned long long>(counts.leaders),
      static_cast<unsigned long long>(counts.crashes),
      static_cast<unsigned long long>(counts.fetches),
      static_cast<unsigned long long>(counts.inserted),
      static_cast<unsigned long long>(counts.reserved),
      static_cast<unsigned long long>(counts.deleted),
      static_cast<unsigned long long>(counts.held_over),
      static_cast<unsigned long long>(counts.comparisons),
      static_cast<unsigned long long>(counts.member_changes),
      static_cast<unsigned long long>(counts.hand_overs),
      static_cast<unsigned long long>(counts.wipes), static_cast<unsigned long long>(counts.joins),
      static_cast<unsigned long long>(counts.rises));
}

TEST_CASE(
    "a voter that has lost its disks is not invited back, even if it has just become a voter") {
  constexpr std::uint64_t kSeeds = kOneIn > 1 ? 5 : 20;
  LifeCounts counts;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Nature nature;
    nature.seed = seed;
    nature.wipes = 5;
    nature.member_changes = 60;
    nature.stalls = 40;  // of disks: promotions are committed late
    World world(nature);
    if (world.live()) FAIL(world.story());
    counts += world.counts();
  }
  CHECK(counts.wipes > 2 * kSeeds);
  CHECK(counts.joins > kSeeds);
}

TEST_CASE("forged frames change nothing, whatever fails") {
  constexpr std::uint64_t kSeeds = kOneIn > 1 ? 4 : 10;
  LifeCounts counts;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Nature nature = some_nature(seed);
    nature.forgeries = 300;
    World world(nature);
    if (world.live()) FAIL(world.story());
    counts += world.counts();
  }
  CHECK(counts.forgeries > 50 * kSeeds);
  CHECK(counts.committed > 50 * kSeeds);
}

TEST_CASE("members get other addresses, whatever fails, and keep their ids and roles") {
  constexpr std::uint64_t kSeeds = kOneIn > 1 ? 4 : 16;
  LifeCounts counts;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Nature nature = some_nature(seed);
    nature.address_changes = 60;
    nature.member_changes = seed % 2 == 0 ? 20 : 0;
    World world(nature);
    if (world.live()) FAIL(world.story());
    counts += world.counts();
  }
  CHECK(counts.address_changes > 10 * kSeeds);
  CHECK(counts.committed > 50 * kSeeds);
}

TEST_CASE("a rolling upgrade under faults raises the level, never too early, and it never falls") {
  constexpr std::uint64_t kSeeds = kOneIn > 1 ? 4 : 20;
  LifeCounts counts;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Nature nature = some_nature(seed);
    nature.levels.assign(nature.nodes, 1);
    nature.upgrades.clear();
    nature.uplink = 0;
    nature.machine.founding_level = cluster::kFirstLevel;
    for (std::size_t node = 0; node < nature.nodes; ++node) {
      nature.levels[node] = static_cast<cluster::Level>(1 + node % 3);
      nature.upgrades.push_back(
          {.at = Time(5s) + node * 3s, .node = node, .level = cluster::Level{3}});
    }
    World world(nature);
    if (world.live()) FAIL(world.story());
    counts += world.counts();
  }
  CHECK(counts.rises >= kSeeds);
}

}  // namespace tubed::cluster_test
