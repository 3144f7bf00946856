// The plan of a run of the benchmark: a plain value that the command line fills in and that does
// not change during a run.
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
  std::size_t clients = 50;   // with pipe: producers and consumers together
  std::size_t producers = 0;  // with pipe: the first of the clients
  std::size_t in_flight = 1;  // unanswered commands per client
  std::size_t body_bytes = 100;
  std::size_t tubes = 1;  // 1: "default"; else bench-0 and so on
  std::uint32_t delay_seconds = 0;
  std::uint32_t priority = 0;
  std::uint32_t ttr_seconds = 60;
  std::uint64_t jobs = 0;               // the run ends after this number, all measured; 0: no bound
  std::optional<Clock::duration> time;  // the run ends after this time
  Clock::duration warm_up{};            // not measured; zero with `jobs`
  bool fill = true;                     // with reserve: puts `jobs` first
  double rate = 0;                      // with pipe: puts per second; 0: limited by in_flight
  bool each_latency = false;            // keeps each latency, not only the histogram
  bool progress = false;                // a line on stderr, once a second

  // Spreads clients over the tubes; with pipe, producers and consumers alike.
  std::size_t tube_of(std::size_t client) const {
    return (client < producers ? client : client - producers) % tubes;
  }
};

}  // namespace tubed::tubectl::bench
