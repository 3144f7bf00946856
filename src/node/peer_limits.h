// PeerLimits: time limits and bounds of connections between nodes.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/time.h"
#include "cluster/control.h"

namespace tubed::node {

struct PeerLimits {
  Duration hello = std::chrono::seconds(2);        // for an accepted connection
  Duration welcome = std::chrono::seconds(1);      // for a link, since dialling
  Duration request = std::chrono::seconds(5);      // for a request, since dialling
  Duration retry = std::chrono::milliseconds(20);  // before a link is dialled again; doubles
  Duration last_retry = std::chrono::milliseconds(200);
  Duration user_timeout = std::chrono::seconds(1);  // for unacknowledged bytes
  std::size_t pending = 64;                         // connections without a hello
  std::size_t requests = 16;                        // running, from other nodes
  std::size_t unsent = std::size_t{64} << 20;       // bytes per link

  static PeerLimits of(Duration election_timeout) {
    PeerLimits limits;
    limits.user_timeout = std::max(limits.user_timeout, 3 * election_timeout);
    return limits;
  }
};

// The longest control frame: two texts, and members of fixed size.
inline constexpr std::size_t kMostControlBytes = 2 * cluster::kMostControlText + 1024;

}  // namespace tubed::node
