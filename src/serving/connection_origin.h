// ConnectionOrigin: how a client is connected.
#pragma once

#include <optional>

#include "config/settings.h"
#include "loop/tls_channel.h"
#include "os/socket.h"

namespace tubed::serving {

// The listener's settings are valid during the call.
struct ConnectionOrigin {
  const Listen& listen;
  loop::TlsPeer certificate = {};                   // empty: the listener does not ask for it
  std::optional<os::PeerCredentials> process = {};  // of a listener with auth = "peer"
  bool is_forwarded = false;                        // another node says all this of its client
};

}  // namespace tubed::serving
