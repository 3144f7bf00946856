// tubectl stats: prints the statistics of a server, a tube, or a group of jobs.
//
// The keys and values are the server's own: new keys of a later server need no change here.

#include <fmt/format.h>

#include "protocol/arguments.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"
#include "tubectl/watch.h"

namespace tubed::tubectl {
namespace {

struct StatsOptions {
  Server server;
  std::string tube;
  std::optional<std::string> group;
  std::optional<double> watch;
  bool json = false;
};

// Returns 0 if the server knows the command. beanstalkd answers BAD_FORMAT to stats-group.
Result<int> check_group(const StatsOptions& options, client::Connection& connection) {
  if (!options.group) return 0;
  return demand_capability(connection, "stats", "stats-group", "stats-group");
}

Result<int> show_stats(const StatsOptions& options, client::Connection& connection) {
  const auto known = check_group(options, connection);
  if (!known || *known != 0) return known;
  std::string command = "stats";
  std::string missing;
  if (options.group) {
    command = fmt::format("stats-group {}", *options.group);
    missing = fmt::format("group {} has no members, and no job waits for it", *options.group);
  } else if (!options.tube.empty()) {
    command = fmt::format("stats-tube {}", options.tube);
    missing = no_such_tube(options.tube);
  }
  const auto answer = TRY(connection.ask(command));
  if (answer.is("NOT_FOUND")) return fail(kExitFailure, missing);
  if (!answer.is("OK")) return refused("stats", answer);
  const Json stats = stats_json(client::StatsBlock(answer.body));
  return print(options.json ? to_line(stats) + "\n" : aligned_lines(stats));
}

Result<int> run_stats(const StatsOptions& options) {
  if (options.group && !is_tube_name(*options.group)) {
    return fail(kExitUsage, "--group takes a name, with the letters of a tube's name");
  }
  return look_or_watch(
      options.server, "stats", options.watch, options.json,
      [&](client::Connection& connection) { return show_stats(options, connection); });
}

constexpr std::array kStatsOptions{
    server_option<&StatsOptions::server>(),
    kMaxReplyOption,
    tube_option_or_word<&StatsOptions::tube>("Those of this tube"),
    option<&StatsOptions::group>({.names = "--group",
                                  .type = text("NAME"),
                                  .help = "The number of members of this group in each state, and "
                                          "of the jobs that wait for it",
                                  .excludes = {"--tube"}}),
    watch_option<&StatsOptions::watch>(),
    json_option<&StatsOptions::json>(),
};

}  // namespace

const Subcommand& stats_command() {
  static constexpr Subcommand kCommand = runs<StatsOptions, run_stats>(
      {.name = "stats",
       .group = kLookGroup,
       .summary = "Show the numbers of the server, of a tube, or of a group",
       .options = kStatsOptions,
       .footer = R"(The server must have stats-group for --group: beanstalkd has not.

examples:
  tubectl stats
  tubectl stats --tube mail
  tubectl stats --group report
  tubectl stats --json
  tubectl stats --tube mail --watch 5)"});
  return kCommand;
}

}  // namespace tubed::tubectl
