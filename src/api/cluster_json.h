// The cluster as one of its nodes sees it, as JSON: for the API and for the admin socket.
#pragma once

#include <string>

#include "stats/cluster.h"

namespace tubed::api {

// One object and a line end. Ids are texts of 16 hexadecimal digits, indexes count entries, and
// null is a value that is not known or that the node does not have. O(members).
std::string cluster_json(const stats::ClusterState& cluster);

}  // namespace tubed::api
