// Bare: write + fdatasync in a loop, with no server around it. What a disk asks of anybody.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "tubectl/bench/latencies.h"

namespace tubed::bench {

using tubectl::bench::Clock;
using tubectl::bench::Figures;

enum class Space : std::uint8_t {
  growing,   // each write makes the file longer
  reserved,  // fallocate(): the place is the file's, and nothing was ever written there
  written,   // zeros are on the disk already
};

struct BarePlan {
  std::string file;  // made anew, and removed at the end
  Space space = Space::growing;
  std::size_t bytes = 0;  // of one write
  Clock::duration time{};
  bool each_latency = false;  // all are kept, not only counted
};

Result<Figures> run_bare(const BarePlan& plan);

}  // namespace tubed::bench
