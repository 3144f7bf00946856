// A state of a cluster, for tests: "a" leads, "b" is late, and "c" was just added.
#pragma once

#include "stats/cluster.h"

namespace tubed::stats {

inline ClusterState leader_of_three() {
  return {.name = "a",
          .id = 1,
          .cluster = 0xdeadbeef,
          .role = ClusterRole::leader,
          .serves = false,
          .leader = "a",
          .term = 7,
          .committed = 1000,
          .applied = 999,
          .stored = 1001,
          .members_index = 900,
          .lease = std::chrono::milliseconds(270),
          .raft_log_bytes = 12'345,
          .raft_log_limit = 67'890,
          .raft_log_full = true,
          .held_over = 3,
          .elections = 4,
          .leaderships_lost = 3,
          .leases_lost = 2,
          .fetches = 1,
          .slow_appends = 5,
          .forwarded = 6,
          .nodes = {{.name = "a",
                     .id = 1,
                     .address = "127.0.0.1:11301",
                     .votes = true,
                     .leads = true,
                     .is_self = true,
                     .match = 1001,
                     .silence = Duration::zero(),
                     .level = 2,
                     .lag = Duration::zero()},
                    {.name = "b",
                     .id = 2,
                     .address = "127.0.0.1:11302",
                     .votes = true,
                     .match = 990,
                     .silence = std::chrono::microseconds(12'500),
                     .link_rate = 6'250'000,
                     .level = 1,
                     .lag = std::chrono::microseconds(2'250'500),
                     .clock_difference = std::chrono::milliseconds(1'500),
                     .reached_at = "127.0.0.9:11302"},
                    {.name = "c", .id = 3, .address = "[::1]:11303"}},
          .election_timeout = std::chrono::milliseconds(300),
          .differing = {{.name = "limits.job_bytes", .nodes = {{"a", "c"}, {"b"}}}}};
}

}  // namespace tubed::stats
