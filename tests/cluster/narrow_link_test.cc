// Clusters whose machines have narrow uplinks, under load.
#include <cstdio>

#include <doctest/doctest.h>

#include "cluster/levels.h"
#include "tests/cluster/world.h"

namespace tubed::cluster_test {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMbit = 1'000'000 / 8;

// Producers of large bodies, each with one put at a time, on machines without faults.
Nature producers(std::size_t clients, std::uint32_t body_bytes, std::uint64_t uplink) {
  Nature nature;
  nature.length = 4s;
  nature.clients = clients;
  nature.uplink = uplink;
  nature.habits.put_bytes = body_bytes;
  nature.machine.job_bytes = body_bytes;
  nature.machine.segment_bytes = 64 << 20;
  nature.machine.raft_file_bytes = 64 << 20;
  nature.crashes = nature.power_losses = nature.partitions = nature.one_way_cuts = 0;
  nature.pauses = nature.resets = nature.clock_steps = nature.stalls = 0;
  nature.transfers = nature.confusions = nature.member_changes = 0;
  return nature;
}

}  // namespace

TEST_CASE("before level 3, load on a narrow link keeps signs of life from the followers") {
  Nature nature = producers(1, 8 << 20, 100 * kMbit);
  nature.levels = {2, 2, 2};
  nature.machine.founding_level = 2;
  World world(nature);
  world.live();
  CHECK(world.counts().leaders > 1);
}

}  // namespace tubed::cluster_test
