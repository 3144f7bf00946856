// The plan of a run of the benchmark.
//
// A plain value that the command line fills in; it does not change during a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/connection.h"
#include "tubectl/bench/latencies.h"

namespace tubed::tubectl::bench {

enum class Work : std::uint8_t { put, reserve, cycle, pipe };

constexpr std::string_view name_of(Work work) {
  switch (work) {
    case Work::put:
      return "put";
    case Work::reserve:
      return "reserve";
    case Work::cycle:
      return "cycle";
    case Work::pipe:
      return "pipe";
  }
  return "";
}

struct Plan {
  Work work = Work::put;
  client::Target server;
  std::size_t clients = 50;   // of pipe: producers and consumers together
  std::size_t producers = 0;  // of pipe; the clients before the consumers
  std::size_t in_flight = 1;  // commands a client has sent whose reply has not come
  std::size_t body_bytes = 100;
  std::size_t tubes = 1;  // 1: "default"; else bench-0 and so on
  std::uint32_t delay_seconds = 0;
  std::uint32_t priority = 0;
  std::uint32_t ttr_seconds = 60;
  std::uint64_t jobs = 0;               // ends after this number, all of them measured; 0: no bound
  std::optional<Clock::duration> time;  // ends after that
  Clock::duration warm_up{};            // not measured; zero with `jobs`
  bool fill = true;                     // of reserve: `jobs` are put first
  double rate = 0;                      // of pipe: puts a second; 0: as fast as in_flight allows
  bool each_latency = false;            // all are kept, not only counted
  bool progress = false;                // a line on stderr, once a second

  // Clients are spread over the tubes; of pipe producers and consumers alike.
  std::size_t tube_of(std::size_t client) const {
    return (client < producers ? client : client - producers) % tubes;
  }
};

}  // namespace tubed::tubectl::bench
