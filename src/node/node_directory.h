// Protects the directory of a node from a server without a cluster, even in a build without cluster
// mode.
#pragma once

#include <string>

#include "base/result.h"

namespace tubed::node {

// Fails if the directory belongs to a node or is becoming a node: a server without a cluster would
// change the journal, which would then differ from the journals of the other nodes.
Result<void> refuse_node(const std::string& directory);

}  // namespace tubed::node
