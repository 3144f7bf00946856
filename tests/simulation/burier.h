// A client that buries many jobs of its own tube and changes their priorities in any order: the
// journal then has their places in another order than the tube.
#pragma once

#include <memory>
#include <string>

#include "tests/simulation/client.h"

namespace tubed::simulation {

std::unique_ptr<Script> bury_many(const World& world, Knowledge& known, const std::string& name);

}  // namespace tubed::simulation
