// tubectl wait: waits until a job ends (wait).
//
// The exit code says how it ended: a script need not read the output.
#include <chrono>
#include <limits>

#include <fmt/format.h>

#include "protocol/reply.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"

namespace tubed::tubectl {
namespace {

namespace word = protocol::word;

constexpr std::string_view kWaitFooter =
    R"(A job ends when any client deletes it, when its tube is flushed, or when it is
buried. The exit code is 0 for a deleted job, 2 for a buried one, 75 if neither
happened in time, and 1 if there is no such job: it may have ended before. The
server must have wait: beanstalkd has not.

examples:
  tubectl wait --timeout 2 3 || tubectl job 3
  tubectl wait --timeout 0 3 || test $? = 75)";

struct WaitOptions {
  Server server;
  JobId id = 0;
  std::optional<std::uint32_t> timeout;
  bool json = false;
};

// `ended`: "deleted" or "buried"; null: the job has not ended.
int print_end(const WaitOptions& options, const Json& ended) {
  if (!options.json) return 0;
  return print(to_line({{"id", options.id}, {"ended", ended}}) + "\n");
}

Result<int> run_wait(const WaitOptions& options) {
  auto connection = TRY(connect(options.server));
  // The longest wait of the protocol, 136 years.
  constexpr std::uint32_t kLongest = std::numeric_limits<std::uint32_t>::max();
  TRY(connection.send(
      fmt::format("wait {} {}\r\n", options.timeout.value_or(kLongest), options.id)));
  const auto reply = TRY(
      connection.receive(options.timeout ? std::chrono::seconds(*options.timeout) + client::kTimeout
                                         : Duration::max()));
  const std::string job = fmt::format("job {}", options.id);
  if (reply.is("DELETED")) return print_end(options, "deleted");
  if (reply.is(word::kBuried) || reply.is(word::kTimedOut)) {
    const bool buried = reply.is(word::kBuried);
    if (const int code = print_end(options, buried ? Json("buried") : Json()); code != 0)
      return code;
    return buried ? fail(kExitBuried, job + " is buried")
                  : fail(kExitTimedOut, job + " has not ended");
  }
  if (reply.is(word::kUnknownCommand)) {
    return fail(kExitFailure, "wait: the server does not know wait");
  }
  return refused(job, reply);
}

constexpr std::array kWaitOptions{
    option<&WaitOptions::id>({.names = "ID",
                              .type = count(1, std::numeric_limits<JobId>::max(), "ID"),
                              .help = "The job",
                              .required = true}),
    server_option<&WaitOptions::server>(),
    kMaxReplyOption,
    option<&WaitOptions::timeout>(
        {.names = "--timeout",
         .type = seconds(),
         .help = "Wait at most this time; 0 only looks whether it is buried [no limit]"}),
    json_option<&WaitOptions::json>("Print the id, and how the job ended"),
};

}  // namespace

const Subcommand& wait_command() {
  static constexpr Subcommand kCommand =
      runs<WaitOptions, run_wait>({.name = "wait",
                                   .group = kWorkGroup,
                                   .summary = "Wait until a job is deleted or buried",
                                   .options = kWaitOptions,
                                   .footer = kWaitFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
