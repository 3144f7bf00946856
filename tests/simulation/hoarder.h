// A client that sends commands with long replies and does not read for a while.
#pragma once

#include <memory>
#include <string>

#include "tests/simulation/client.h"

namespace tubed::simulation {

std::unique_ptr<Script> hoard(const World& world, const std::string& name);

}  // namespace tubed::simulation
