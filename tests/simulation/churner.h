// A client that puts large jobs into its own tube and removes them, one by one or all at once: most
// of the journal is then dead.
#pragma once

#include <memory>
#include <string>

#include "tests/simulation/client.h"

namespace tubed::simulation {

std::unique_ptr<Script> churn(const World& world, Knowledge& known, const std::string& name);

}  // namespace tubed::simulation
