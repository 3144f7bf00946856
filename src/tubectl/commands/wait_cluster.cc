// tubectl wait-cluster: waits until a cluster is healthy.
#include <array>
#include <chrono>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "tubectl/cluster/admin.h"
#include "tubectl/cluster/wait.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/json.h"
#include "tubectl/server.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kWaitClusterFooter =
    R"(A cluster is healthy when a leader is known, and each member votes or is a
standby that stays, was heard within the last second, and lacks at most 1,000
entries. Only the leader knows that: on another node the exit code is 1. It looks
every 0.1 s.

examples:
  tubectl wait-cluster --timeout 60
  tubectl wait-cluster --timeout 0 || tubectl cluster status)";

struct WaitClusterOptions {
  std::string admin = cluster::kDefaultAdmin;
  std::optional<double> timeout;
  bool json = false;
};

Result<int> run_wait_cluster(const WaitClusterOptions& options) {
  const cluster::Admin admin(options.admin);
  cluster::Wait wait;
  wait.judge = cluster::until_healthy();
  if (options.timeout) {
    wait.limit =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*options.timeout));
  }
  StatusLine line;
  const auto result = cluster::run_wait(
      wait, cluster::system_clock(), [&](Duration most) { return admin.look(most); },
      [&](const std::string& text) { line.show(text); });
  line.clear();
  const auto* const failure = std::get_if<cluster::Failure>(&result);
  if (options.json) {
    Json state{{"healthy", failure == nullptr}};
    if (failure != nullptr) state["reason"] = failure->reason;
    if (const int code = print(to_line(state) + "\n"); code != 0) return code;
  }
  return failure == nullptr ? 0
                            : fail(failure->code, fmt::format("wait-cluster: {}", failure->reason));
}

constexpr std::array kWaitClusterOptions{
    cluster::admin_option<&WaitClusterOptions::admin>(),
    option<&WaitClusterOptions::timeout>(
        {.names = "--timeout",
         .type = time(0, 1e7),
         .help = "Give up after this time; 0 checks once [never]"}),
    json_option<&WaitClusterOptions::json>("Print whether the cluster is healthy, and why not"),
};

}  // namespace

const Subcommand& wait_cluster_command() {
  static constexpr Subcommand kCommand =
      runs<WaitClusterOptions, run_wait_cluster>({.name = "wait-cluster",
                                                  .group = kControlGroup,
                                                  .summary = "Wait until a cluster is healthy",
                                                  .options = kWaitClusterOptions,
                                                  .footer = kWaitClusterFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
