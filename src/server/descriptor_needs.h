// The number of descriptors that a server may have open at once.
#pragma once

#include <cstdint>

#include "config/settings.h"

namespace tubed::server {

// Returns the sum of all bounds on connections, and some descriptors for listeners, the loop, the
// log and the journal.
std::uint64_t most_descriptors(const Settings& settings);

}  // namespace tubed::server
