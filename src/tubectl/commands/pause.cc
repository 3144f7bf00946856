// tubectl pause: pauses a tube for a while.

#include <fmt/format.h>

#include "client/times.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"

namespace tubed::tubectl {
namespace {

struct PauseOptions {
  Server server;
  std::string tube;
  std::optional<std::chrono::milliseconds> time;
  bool end = false;
  bool json = false;
};

// A pause of 0 s ends the pause: --end and 0 send the same command.
Result<int> run_pause(const PauseOptions& options) {
  if (!options.time && !options.end) {
    return fail(kExitUsage, "say for how long, or --end; try tubectl pause --help");
  }
  auto connection = TRY(connect(options.server));
  const auto time = options.time.value_or(std::chrono::milliseconds(0));
  const auto known = demand_time(connection, "pause", time);
  if (!known || *known != 0) return known;
  const auto answer = TRY(
      connection.ask(fmt::format("pause-tube {} {}", options.tube, client::time_argument(time))));
  if (answer.is("PAUSED")) {
    if (!options.json) return 0;
    const Json seconds = client::has_milliseconds(time)
                             ? Json(static_cast<double>(time.count()) / 1000)
                             : Json(time.count() / 1000);
    return print(to_line({{"tube", options.tube}, {"pause", seconds}}) + "\n");
  }
  if (answer.is("NOT_FOUND")) {
    return fail(kExitFailure, no_such_tube(options.tube));
  }
  return refused("pause", answer);
}

constexpr std::array kPauseOptions{
    tube_option_or_word<&PauseOptions::tube>("The tube", true),
    option<&PauseOptions::time>(
        {.names = "TIME", .type = milliseconds(), .help = "For how long; 0 ends it"}),
    option<&PauseOptions::end>(
        {.names = "--end", .help = "End the pause now", .excludes = {"TIME"}}),
    server_option<&PauseOptions::server>(),
    kMaxReplyOption,
    json_option<&PauseOptions::json>("Print the tube and the seconds of the pause"),
};

}  // namespace

const Subcommand& pause_command() {
  static constexpr Subcommand kCommand = runs<PauseOptions, run_pause>(
      {.name = "pause",
       .group = kControlGroup,
       .summary = "Pause a tube: none of its jobs is reserved for a while",
       .options = kPauseOptions,
       .footer =
           R"(A time such as 300ms needs a server that takes milliseconds: beanstalkd does not.

examples:
  tubectl pause mail 1h
  tubectl pause mail 300ms
  tubectl pause mail --end)",
       .usage = "[OPTIONS] TUBE TIME\n[OPTIONS] TUBE --end"});
  return kCommand;
}

}  // namespace tubed::tubectl
