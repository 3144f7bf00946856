// Counts of the state that the server keeps, each with a bound on any machine.
#pragma once

#include <string>

#include "commands/service.h"
#include "tests/simulation/net.h"

namespace tubed::simulation {

// Returns a line about the first count that exceeds its bound; empty without one. O(connections).
std::string excess_of(const commands::Service& service, const Net& net);

}  // namespace tubed::simulation
