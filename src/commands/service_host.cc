#include "commands/service_host.h"

#include "commands/service.h"

namespace tubed::commands {

void ServiceHost::drain_requested(Service& service, bool draining, SessionId /*client*/) {
  service.set_draining(draining);
}

// Without a server there are no settings, and nothing changes.
std::optional<ReloadResult> ServiceHost::reload_requested(SessionId /*client*/) {
  return ReloadResult();
}

Authentication ServiceHost::authenticate(std::string_view /*token*/, SessionId /*session*/) {
  return Refused{};
}

void ServiceHost::audit(const AuditEvent& /*event*/) {}

ClientDetails ServiceHost::describe_client(SessionId /*session*/) {
  return {};
}

}  // namespace tubed::commands
