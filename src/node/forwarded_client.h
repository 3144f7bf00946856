// The client of another node: what a node says of it to the leader, and how the leader takes it.
#pragma once

#include <functional>

#include "cluster/control.h"
#include "loop/channel.h"
#include "serving/connection_origin.h"

namespace tubed::node {

// O(names and groups).
cluster::ForwardedClient describe_client(const loop::Channel& channel,
                                         const serving::ConnectionOrigin& origin);

// The client's address and name, as a proxy reports them.
loop::ProxiedClient proxied_client(const cluster::ForwardedClient& client);
// Calls `use` with the origin that describe_client() was given; it is valid during the call. Does
// not call it if the listener or its mode is none that this version knows.
void with_origin(const cluster::ForwardedClient& client,
                 const std::function<void(const serving::ConnectionOrigin&)>& use);

}  // namespace tubed::node
