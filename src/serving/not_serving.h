// Why a node of a cluster does not serve clients, in words.
#pragma once

#include <string>
#include <string_view>

#include "stats/cluster.h"

namespace tubed::serving {

// In a few words; empty: it serves. Null: the server is in no cluster, and serves.
std::string_view not_serving_reason(const stats::ClusterState* cluster);
// The same in sentences, with the name of the leader if it is known. Precondition: it does not
// serve.
std::string not_serving_detail(const stats::ClusterState& cluster);

}  // namespace tubed::serving
