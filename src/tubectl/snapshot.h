// Snapshot: the statistics of a server and its tubes at one moment, and the rates between two
// snapshots.
//
// A snapshot is not atomic: it takes the statistics of the server first and then of each tube,
// pipelined, while clients continue to work. The cost is one command per tube.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/connection.h"
#include "client/stats_block.h"

namespace tubed::tubectl {

// The numbers of a tube, named as in stats-tube.
struct TubeCounts {
  std::string name;
  std::uint64_t ready = 0;
  std::uint64_t urgent = 0;
  std::uint64_t reserved = 0;
  std::uint64_t delayed = 0;
  std::uint64_t held = 0;  // delayed jobs that a group holds
  std::uint64_t buried = 0;
  std::uint64_t using_it = 0;
  std::uint64_t watching = 0;
  std::uint64_t waiting = 0;
  std::uint64_t pause_seconds_left = 0;
  std::uint64_t total_jobs = 0;    // put since the tube was created
  std::uint64_t deleted_jobs = 0;  // deleted since the tube was created
};

struct Snapshot {
  std::chrono::steady_clock::time_point taken;
  client::StatsBlock server;
  std::vector<TubeCounts> tubes;  // by name

  // Null: no such tube. O(log tubes).
  const TubeCounts* find(std::string_view tube) const;
};

// Jobs per second.
struct Rates {
  double puts = 0;
  double deletes = 0;
};

// Takes a snapshot of all tubes, or of the named tubes that exist; pipelined. Fails if the
// connection is lost or the server refuses, for example because it has too many connections.
Result<Snapshot> take_snapshot(client::Connection& connection,
                               const std::vector<std::string>& only = {});

// Prints which of these tubes the snapshot lacks. Returns kExitFailure if it lacks any, else
// `code`.
int report_missing(const Snapshot& snapshot, const std::vector<std::string>& tubes, int code);

// The rates between two snapshots of a tube. A tube that was created meanwhile (`before` is null),
// or removed and created again, counts from its beginning.
Rates rates_between(const TubeCounts* before, const TubeCounts& after, double seconds);

}  // namespace tubed::tubectl
