// A server without a cluster, in the directory of a node. Also in a build without cluster mode.
#pragma once

#include <string>

#include "base/result.h"

namespace tubed::node {

// An error if the directory is that of a node, or becomes one: a server of its own would change
// the journal, which would then differ from those of the other nodes.
Result<void> refuse_node(const std::string& directory);

}  // namespace tubed::node
