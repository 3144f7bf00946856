// Counts of what the server keeps and does, each with a bound that holds on any machine.
#pragma once

#include <cstdint>
#include <string>

#include "commands/service.h"
#include "tests/simulation/net.h"

namespace tubed::simulation {

// Returns a line about the first count that exceeds its bound, or an empty text. O(connections).
std::string excess_of(const commands::Service& service, const Net& net);

// The work of a process in each iteration of its loop.
class TickCosts {
 public:
  void begin_process(const engine::Engine& engine) { walked_ = engine.entries_walked(); }
  // Called after each iteration. Returns a line about the engine's steps in it if they exceed their
  // bound, or an empty text.
  std::string excess(const engine::Engine& engine);
  // Returns the most steps in an iteration so far.
  std::uint64_t most_walked() const { return most_walked_; }

 private:
  std::uint64_t walked_ = 0;
  std::uint64_t most_walked_ = 0;
};

}  // namespace tubed::simulation
