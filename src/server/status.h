// The state of a server in words: for systemd, as its status, and for a health check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "commands/service.h"
#include "server/lifecycle.h"
#include "stats/cluster.h"

namespace tubed::server {

// Returns one line for `systemctl status`. It begins with "drained" exactly if drain mode has
// stopped the server as drain.exit says (packaging/systemd/close-sockets reads that word), with
// "drain.timeout" if that has passed first, and with "draining" exactly while the server drains.
// --drain reads all three.
std::string status_line(const commands::Service& service, const Lifecycle& lifecycle,
                        std::size_t connections);

// Returns why the server accepts no new jobs, in a few words; empty if it accepts them. A server
// that lacks only memory stays ready: the workers that make room arrive the same way as new jobs.
std::string_view unready_reason(const commands::Service& service, const Lifecycle& lifecycle);

// Returns why clients that need the leader must connect elsewhere; empty if they are served here. A
// server outside of a cluster is its own leader.
std::string_view not_leader_reason(const commands::Service& service, const Lifecycle& lifecycle);

// --- A node of a cluster

// The status line of a node that does not serve. `jobs`: in its queue.
std::string node_status(const stats::ClusterState& cluster, std::uint64_t jobs);

}  // namespace tubed::server
