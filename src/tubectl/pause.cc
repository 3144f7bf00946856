// tubectl pause: no jobs of a tube for a while.
#include <memory>

#include <fmt/format.h>

#include "tubectl/exit_codes.h"
#include "tubectl/subcommand.h"
#include "tubectl/values.h"

namespace tubed::tubectl {
namespace {

struct PauseOptions {
  Server server;
  std::string tube;
  std::uint32_t seconds = 0;
  bool end = false;
};

Result<int> run_pause(const PauseOptions& options) {
  auto connection = TRY(connect(options.server));
  const auto answer =
      TRY(connection.ask(fmt::format("pause-tube {} {}", options.tube, options.seconds)));
  if (answer.is("PAUSED")) return 0;
  if (answer.is("NOT_FOUND")) {
    return fail(kExitFailure, fmt::format("there is no tube {}", options.tube));
  }
  return refused("pause", answer);
}

}  // namespace

Subcommand add_pause(CLI::App& parent) {
  const auto options = std::make_shared<PauseOptions>();
  CLI::App& app = *parent.add_subcommand("pause", "Let nobody reserve jobs of a tube for a while");
  app.add_option("-t,--tube,TUBE", options->tube, "The tube")
      ->check(is_tube())
      ->type_name("TUBE")
      ->required();
  CLI::Option* const seconds = app.add_option("TIME", options->seconds, "For how long; 0 ends it")
                                   ->type_name("TIME")
                                   ->transform(is_seconds());
  app.add_flag("--end", options->end, "End the pause now")->excludes(seconds);
  add_server_option(app, options->server);
  app.footer(R"(examples:
  tubectl pause mail 1h
  tubectl pause mail --end)");
  return Subcommand{&app, [options, seconds]() -> Result<int> {
                      if (seconds->empty() && !options->end) {
                        return fail(kExitUsage,
                                    "say for how long, or --end; try tubectl pause --help");
                      }
                      return run_pause(*options);
                    }};
}

}  // namespace tubed::tubectl
