// A client that puts large jobs into a tube of its own and removes them, one by one or all at once,
// so that most of the journal is dead.
#pragma once

#include <memory>
#include <string>

#include "tests/simulation/client.h"

namespace tubed::simulation {

std::unique_ptr<Script> churn(const World& world, Knowledge& known, const std::string& name);

}  // namespace tubed::simulation
