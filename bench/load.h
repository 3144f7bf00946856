// Load: some clients, each of which keeps so many puts in flight, on one thread.
#pragma once

#include <string>

#include "base/result.h"
#include "bench/figures.h"

namespace tubed::bench {

struct LoadPlan {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  unsigned clients = 1;
  unsigned in_flight = 1;  // puts a client has sent whose reply has not come
  std::size_t body_bytes = 100;
  std::uint64_t puts = 0;     // ends after so many, all of them measured; 0: ends after `time`
  Clock::duration warm_up{};  // not measured
  Clock::duration time{};
  bool latencies = false;
};

// Returns when every put that was sent is answered.
Result<Figures> run_load(const LoadPlan& plan);

}  // namespace tubed::bench
