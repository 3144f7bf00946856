// TestHost: a host of a service, some of whose answers the test chooses.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "commands/service_host.h"

namespace tubed::commands {

struct TestHost final : ServiceHost {
  const stats::ClusterState* cluster() override { return cluster_state; }
  void drain_requested(Service& service, bool draining, SessionId client) override {
    if (!refuses_drain_mode) ServiceHost::drain_requested(service, draining, client);
  }
  std::optional<ReloadResult> reload_requested(SessionId session) override {
    return answer_to_reload ? answer_to_reload(session) : ReloadResult();
  }
  Authentication authenticate(std::string_view token, SessionId /*session*/) override {
    return answer_to_token ? answer_to_token(token) : Refused{};
  }
  void audit(const AuditEvent& event) override {
    if (on_audit) on_audit(event);
  }
  ClientDetails describe_client(SessionId session) override {
    return details_of ? details_of(session) : ClientDetails();
  }

  const stats::ClusterState* cluster_state = nullptr;
  bool refuses_drain_mode = false;
  std::function<std::optional<ReloadResult>(SessionId session)> answer_to_reload;
  std::function<Authentication(std::string_view token)> answer_to_token;
  std::function<void(const AuditEvent&)> on_audit;
  std::function<ClientDetails(SessionId)> details_of;
};

}  // namespace tubed::commands
