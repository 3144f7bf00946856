// tubectl stats: what a server, or one of its tubes, tells of itself.
#include <memory>

#include <fmt/format.h>

#include "tubectl/exit_codes.h"
#include "tubectl/stats_json.h"
#include "tubectl/subcommand.h"

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

}  // namespace

Subcommand add_stats(CLI::App& parent) {
  const auto options = std::make_shared<StatsOptions>();
  CLI::App& app = *parent.add_subcommand("stats", "Show the numbers of the server, or of a tube");
  add_server_option(app, options->server);
  app.add_option("-t,--tube,TUBE", options->tube, "Those of this tube")
      ->check(is_tube())
      ->type_name("TUBE");
  add_json_flag(app, options->json);
  app.footer(R"(examples:
  tubectl stats
  tubectl stats --tube mail
  tubectl stats --json)");
  return Subcommand{&app, [options] { return run_stats(*options); }};
}

}  // namespace tubed::tubectl
