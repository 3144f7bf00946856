// PeerLimits: the times and bounds of connections between nodes.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/time.h"
#include "cluster/control.h"

namespace tubed::node {

struct PeerLimits {
  Duration hello = std::chrono::seconds(2);        // for a connection that was accepted
  Duration welcome = std::chrono::seconds(1);      // for a link, from the dialling on
  Duration request = std::chrono::seconds(5);      // for a request, from the dialling on
  Duration retry = std::chrono::milliseconds(20);  // until a link is dialled again; it doubles
  Duration last_retry = std::chrono::milliseconds(200);
  Duration user_timeout = std::chrono::seconds(1);  // for bytes that are not acknowledged
  std::size_t pending = 64;                         // connections without a hello
  std::size_t requests = 16;                        // of other nodes, under way
  std::size_t unsent = std::size_t{64} << 20;       // bytes, of a link

  static PeerLimits of(Duration election_timeout) {
    PeerLimits limits;
    limits.user_timeout = std::max(limits.user_timeout, 3 * election_timeout);
    return limits;
  }
};

// No control frame is longer: two texts, and members of fixed sizes.
inline constexpr std::size_t kMostControlBytes = 2 * cluster::kMostControlText + 1024;

}  // namespace tubed::node
