// The reason why a node of a cluster does not serve clients (ServiceHost::serves()), in words.
#pragma once

#include <string>
#include <string_view>

#include "stats/cluster.h"

namespace tubed::serving {

// In a few words.
std::string_view not_serving_reason(const stats::ClusterState& cluster);
// In sentences, with the name of the leader if it is known.
std::string not_serving_detail(const stats::ClusterState& cluster);

}  // namespace tubed::serving
