// Clusters whose machines have narrow uplinks, under load.
#include <cstdio>

#include <doctest/doctest.h>

#include "cluster/levels.h"
#include "tests/cluster/world.h"
#include "tests/share.h"

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

TEST_CASE("before level 3, load on a narrow link keeps signs of life from the followers" *
          doctest::skip(kOneIn > 1)) {
  Nature nature = producers(1, 8 << 20, 100 * kMbit);
  nature.levels = {2, 2, 2};
  nature.machine.founding_level = 2;
  World world(nature);
  world.live();
  CHECK(world.counts().leaders > 1);
}

// Each row of this table once had no put answered and one election after the other.
TEST_CASE("load on a narrow link slows puts down, and brings about no election") {
  struct Row {
    std::size_t clients;
    std::uint32_t body_bytes;
    std::uint64_t mbit;
    Duration timeout;
  };
  for (const Row& row :
       {Row{1, 8 << 20, 100, 300ms}, Row{8, 1 << 20, 100, 300ms}, Row{16, 256 << 10, 100, 300ms},
        Row{30, 64'000, 20, 300ms}, Row{4, 8 << 20, 100, 1s}}) {
    if (kOneIn > 1 && row.mbit > 20) continue;  // a sanitizer makes each byte dear
    Nature nature = producers(row.clients, row.body_bytes, row.mbit * kMbit);
    nature.machine.founding_level = cluster::kFeatureLevel;
    nature.machine.election_timeout = row.timeout;
    World world(nature);
    if (world.live()) FAIL(world.story());
    const LifeCounts& counts = world.counts();
    const double capacity = std::chrono::duration<double>(counts.loaded).count() *
                            static_cast<double>(row.mbit * kMbit);
    const double used = 2.0 * static_cast<double>(counts.loaded_puts * row.body_bytes) / capacity;
    std::printf("%2zu x %7u bytes at %3llu Mbit: %llu puts, %.0f %% of the uplink\n", row.clients,
                row.body_bytes, static_cast<unsigned long long>(row.mbit),
                static_cast<unsigned long long>(counts.loaded_puts), 100 * used);
    CHECK(counts.leaders == 1);
    CHECK(used > 0.8);
    // Both followers take 1 MiB in 168 ms.
    if (row.body_bytes > 900'000) CHECK(counts.slow_appends > 0);
  }
}

}  // namespace tubed::cluster_test
