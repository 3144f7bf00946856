// Bare: write + fdatasync in a loop without a server. This is the minimal cost of the disk.
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
  reserved,  // fallocate(): the space is allocated but unwritten
  written,   // the space is filled with zeros
};

struct BarePlan {
  std::string file;  // created, and removed at the end
  Space space = Space::growing;
  std::size_t bytes = 0;  // size of one write
  Clock::duration time{};
  bool each_latency = false;  // keep every latency, not only the count
};

Result<Figures> run_bare(const BarePlan& plan);

}  // namespace tubed::bench
