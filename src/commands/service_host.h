// ServiceHost: the server around a service, as the service sees it. Each function does what is
// right for a service that has no server around it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "commands/audit.h"
#include "commands/principal.h"
#include "commands/reload_result.h"
#include "facts/types.h"
#include "stats/cluster.h"

namespace tubed::commands {

class Service;

// The connection of a client, as the server describes it.
struct ClientDetails {
  std::string address = "-";  // one word
  std::string tls_name = {};  // of its certificate, as a proxy has reported it; empty: none
  Duration idle{};            // since its last input or the end of its last wait
};

class ServiceHost {
 public:
  virtual ~ServiceHost() = default;

  // The cluster of this node, valid until the next call. Null: the server is in no cluster.
  // O(members).
  virtual const stats::ClusterState* cluster() { return nullptr; }
  // False: the server is a node of a cluster that does not serve clients. O(1).
  virtual bool serves() { return true; }

  // A client asks for drain mode, or for its end. The host calls Service::set_draining() if it
  // agrees.
  virtual void drain_requested(Service& service, bool draining, SessionId client);

  // A client asks for a reload of the settings. No value: the host calls Conversation::reloaded()
  // later, if the session still awaits it.
  virtual std::optional<ReloadResult> reload_requested(SessionId client);

  // The token is empty if the client's was malformed. It must not be kept.
  virtual Authentication authenticate(std::string_view token, SessionId session);
  // A conversation with a principal was denied a command, or has run one of the family admin.
  virtual void audit(const AuditEvent& event);

  virtual ClientDetails describe_client(SessionId session);
};

}  // namespace tubed::commands
