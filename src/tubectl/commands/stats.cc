// tubectl stats: the statistics of a server or of one of its tubes.
//
// The keys and values are the server's own, so the output of a later server shows its new keys
// without a change here.

#include <fmt/format.h>

#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"

namespace tubed::tubectl {
namespace {

struct StatsOptions {
  Server server;
  std::string tube;
  bool json = false;
};

Result<int> run_stats(const StatsOptions& options) {
  auto connection = TRY(connect(options.server));
  const std::string& tube = options.tube;
  const auto answer =
      TRY(connection.ask(tube.empty() ? "stats" : fmt::format("stats-tube {}", tube)));
  if (answer.is("NOT_FOUND")) {
    return fail(kExitFailure, fmt::format("there is no tube {}", tube));
  }
  if (!answer.is("OK")) return refused("stats", answer);
  const Json stats = stats_json(client::StatsBlock(answer.body));
  return print(options.json ? to_line(stats) + "\n" : aligned_lines(stats));
}

constexpr std::array kStatsOptions{
    server_option<&StatsOptions::server>(),
    kMaxReplyOption,
    tube_option_or_word<&StatsOptions::tube>("Those of this tube"),
    json_option<&StatsOptions::json>(),
};

}  // namespace

const Subcommand& stats_command() {
  static constexpr Subcommand kCommand =
      runs<StatsOptions, run_stats>({.name = "stats",
                                     .group = kLookGroup,
                                     .summary = "Show the numbers of the server, or of a tube",
                                     .options = kStatsOptions,
                                     .footer = R"(examples:
  tubectl stats
  tubectl stats --tube mail
  tubectl stats --json)"});
  return kCommand;
}

}  // namespace tubed::tubectl
