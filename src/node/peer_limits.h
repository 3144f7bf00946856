// PeerLimits: time limits and bounds of connections between nodes.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/time.h"
#include "cluster/control.h"
#include "cluster/message.h"

namespace tubed::node {

struct PeerLimits {
  Duration hello = std::chrono::seconds(2);        // for an accepted connection
  Duration welcome = std::chrono::seconds(1);      // for a link, since dialling
  Duration request = std::chrono::seconds(5);      // for a request, since dialling
  Duration retry = std::chrono::milliseconds(20);  // before a link is dialled again; doubles
  Duration last_retry = std::chrono::milliseconds(200);
  Duration user_timeout = std::chrono::seconds(1);  // for unacknowledged bytes
  // Connections that have not sent their hello and proved the secret: from the host of members, for
  // the messages and a fetch of each; `requests` more may come from there.
  std::size_t pending_of_member = 2;
  // The same from all other hosts together. Also, after the hello, connections for messages of
  // nodes that are not known to be members.
  std::size_t strangers = 8;
  std::size_t requests = 16;                   // running, from other nodes
  std::size_t unsent = std::size_t{64} << 20;  // bytes per link

  static PeerLimits of(Duration election_timeout) {
    PeerLimits limits;
    limits.user_timeout = std::max(limits.user_timeout, 3 * election_timeout);
    return limits;
  }
};

// The bytes that a connection may send before it has proved the secret: a Hello and a Proof.
inline constexpr std::size_t kMostHandshakeBytes = 4096;
inline constexpr std::size_t kProofFrameBytes =
    cluster::kFrameHeaderBytes + 2 + cluster::kProofBytes;
inline constexpr std::size_t kMostHelloBytes = kMostHandshakeBytes - kProofFrameBytes;
// The longest other control frame: two texts, and members of fixed size.
inline constexpr std::size_t kMostControlBytes = 2 * cluster::kMostControlText + 1024;

}  // namespace tubed::node
