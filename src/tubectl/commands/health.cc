// tubectl health: checks that a server answers and can store new jobs. For supervisors that run a
// command.
//
// A draining server is healthy: it refuses puts because an operator asked for that. Whether it
// should get new clients is for /readyz and a load balancer.
#include <array>

#include "client/stats_block.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/commands/time_limit.h"
#include "tubectl/json.h"

namespace tubed::tubectl {
namespace {

struct HealthOptions {
  Server server;
  double timeout = 10;
  bool json = false;
};

Result<int> run_health(const HealthOptions& options) {
  const TimeLimit limit(options.timeout);
  auto connection = TRY(limit.connect(options.server));
  const auto reply = TRY(connection.ask("stats"));
  if (!reply.is("OK")) return refused("health", reply);
  const client::StatsBlock stats(reply.body);
  // tubed 2.0.0 and beanstalkd do not report whether the journal is full.
  const bool full = stats.text("journal-full") == "true";
  const bool draining = stats.text("draining") == "true";
  if (options.json) {
    const Json state{{"healthy", !full}, {"draining", draining}, {"journal-full", full}};
    if (const int code = print(to_line(state) + "\n"); code != 0) return code;
  }
  if (full) return fail(kExitFailure, "health: the journal has no space, so puts are refused");
  if (options.json) return 0;
  return print(draining ? "healthy, draining\n" : "healthy\n");
}

constexpr std::array kHealthOptions{
    server_option<&HealthOptions::server>(),
    kMaxReplyOption,
    option<&HealthOptions::timeout>({.names = "--timeout",
                                     .type = time(0.001, 1e7),
                                     .help = "A server that does not answer for this time is not "
                                             "healthy",
                                     .shows_default = true}),
    json_option<&HealthOptions::json>(),
};

constexpr std::string_view kHealthFooter =
    R"(The exit code is 1 if the journal has no space, and 69 if no server answers in
time. A server that drains is healthy.

examples:
  tubectl health
  tubectl health -s unix:/run/tubed/tubed.sock)";

}  // namespace

const Subcommand& health_command() {
  static constexpr Subcommand kCommand =
      runs<HealthOptions, run_health>({.name = "health",
                                       .group = kLookGroup,
                                       .summary = "Check that a server answers and can keep jobs",
                                       .options = kHealthOptions,
                                       .footer = kHealthFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
