// What a run of the benchmark measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace tubed::bench {

using Clock = std::chrono::steady_clock;

// Of one put or one synced write, in nanoseconds; what took longer than 4 s counts as 4 s.
using Latencies = std::vector<std::uint32_t>;

inline std::uint32_t latency(Clock::duration taken) {
  const auto nanoseconds = std::chrono::nanoseconds(taken).count();
  return nanoseconds < UINT32_MAX ? static_cast<std::uint32_t>(nanoseconds) : UINT32_MAX;
}

struct Figures {
  std::uint64_t all = 0;       // done from the first to the last
  std::uint64_t measured = 0;  // of them, those within the measured time
  Clock::duration time{};      // the measured time
  Latencies latencies;         // of the measured ones, in no order; empty if nobody asked for them
};

}  // namespace tubed::bench
