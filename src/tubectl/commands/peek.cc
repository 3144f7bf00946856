// tubectl peek, job: print a job's body, and what the server reports about it.
//
// Both subcommands pipeline stats-job, peek or both for all ids (look_at) and print each job when
// its last reply has arrived, so memory is bounded by one body. peek with a state uses peek-ready,
// peek-delayed, peek-buried or peek-reserved of the used tube. Neither changes any job.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "client/pipeline.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/jobs/ids.h"
#include "tubectl/json.h"
#include "tubectl/terminal.h"
#include "tubectl/watch.h"

namespace tubed::tubectl {
namespace {

struct PeekOptions {
  Server server;
  std::vector<std::string> ids;
  std::string tube = std::string(kDefaultTube);
  bool ready = false;
  bool delayed = false;
  bool buried = false;
  bool reserved = false;
  bool body = false;
  bool json = false;
  bool raw = false;
  std::optional<double> watch;  // of job
};

// The replies to request for each job.
struct Wanted {
  bool stats = false;
  bool body = false;
};

// Requests each job and passes the replies to show(stats, peek), in order; a reply that was not
// requested is empty. Prints a line for each job that does not exist. Returns the exit code, which
// a failed show() may set.
template <class Show>
Result<int> look_at(client::Connection& connection, const std::vector<JobId>& ids, Wanted wanted,
                    Show show) {
  // The replies of a job arrive in sequence, so the last of them completes it.
  const std::size_t parts = wanted.stats && wanted.body ? 2 : 1;
  std::size_t asked = 0;
  std::size_t answered = 0;
  int code = 0;
  int shown = 0;
  client::Reply stats;
  const auto is_stats = [&](std::size_t at) { return wanted.stats && at % parts == 0; };
  const auto make = [&](std::string& commands) {
    if (asked == ids.size() * parts || shown != 0) return false;
    const char* const command = is_stats(asked) ? "stats-job" : "peek";
    commands += fmt::format("{} {}\r\n", command, ids[asked++ / parts]);
    return true;
  };
  const auto take = [&](client::Reply answer) -> Result<void> {
    const std::size_t at = answered++;
    if (is_stats(at)) stats = answer;
    if (at % parts + 1 < parts || shown != 0) return {};
    if ((!wanted.stats || stats.is("OK")) && (!wanted.body || answer.is("FOUND"))) {
      shown = show(stats, answer);
    } else {
      code = refused(fmt::format("job {}", ids[at / parts]), answer);
    }
    return {};
  };
  TRY(pipelined(connection, make, take));
  return shown != 0 ? shown : code;
}

// Only JSON includes the stats, next to the body.
Result<int> show_bodies(client::Connection& connection, const std::vector<JobId>& ids,
                        const PeekOptions& options) {
  const Wanted wanted{.stats = options.json, .body = true};
  return look_at(connection, ids, wanted, [&](const client::Reply& stats, client::Reply& peeked) {
    if (!options.json) return print(shown_body(peeked.body, ids.size() > 1, options.raw));
    Json job = job_json(client::StatsBlock(stats.body));
    set_body(job, peeked.body);
    return print(to_line(job) + "\n");
  });
}

// Prints the next job in that state; of the reserved jobs, the job reserved first. For JSON it
// requests that job a second time, by id, to get the stats as well.
Result<int> peek_by_state(const PeekOptions& options) {
  const char* const state = options.ready     ? "ready"
                            : options.delayed ? "delayed"
                            : options.buried  ? "buried"
                                              : "reserved";
  auto connection = TRY(connect(options.server));
  if (options.reserved) {
    const auto known = demand_capability(connection, "peek", "peek-reserved", "peek-reserved");
    if (!known || *known != 0) return known;
  }
  const auto used = demand(connection, fmt::format("use {}", options.tube), "USING");
  if (!used || used.value() != 0) return used;
  const auto answer = TRY(connection.ask(fmt::format("peek-{}", state)));
  if (answer.is("NOT_FOUND")) {
    return fail(kExitFailure, fmt::format("there is no {} job in {}", state, options.tube));
  }
  if (!answer.is("FOUND")) return refused("peek", answer);
  if (!options.json) return print(shown_body(answer.body, false, options.raw));
  return show_bodies(connection, {answer.number()}, options);
}

Result<int> run_peek(PeekOptions& options) {
  const int states =
      int{options.ready} + int{options.delayed} + int{options.buried} + int{options.reserved};
  // With a state, a single word that is not an id is the tube.
  if (states == 1 && options.ids.size() == 1 && !is_id_or_stdin(options.ids.front())) {
    options.tube = options.ids.front();
    options.ids.clear();
  }
  const bool ids = std::ranges::all_of(options.ids, is_id_or_stdin);
  if (!ids && states == 0) {
    const auto& word = *std::ranges::find_if_not(options.ids, is_id_or_stdin);
    return fail(kExitUsage, fmt::format("{}; the next job of a tube: tubectl peek --ready {}",
                                        not_an_id(word).message, word));
  }
  if (!ids || states + int{!options.ids.empty()} != 1) {
    return fail(kExitUsage,
                "say which jobs, or one of --ready, --delayed, --buried and --reserved; try "
                "tubectl peek --help");
  }
  if (states == 1) return peek_by_state(options);
  const auto jobs = read_ids(options.ids);
  if (!jobs) return fail(kExitBadInput, jobs.error().message);
  auto connection = TRY(connect(options.server));
  return show_bodies(connection, jobs.value(), options);
}

Result<int> show_jobs(client::Connection& connection, const std::vector<JobId>& ids,
                      const PeekOptions& options) {
  bool first = true;
  const Wanted wanted{.stats = true, .body = options.body};
  return look_at(connection, ids, wanted, [&](const client::Reply& stats, client::Reply& peeked) {
    const client::StatsBlock told(stats.body);
    if (options.json) {
      Json job = job_json(told);
      if (options.body) set_body(job, peeked.body);
      return print(to_line(job) + "\n");
    }
    std::string text = (first ? "" : "\n") + job_lines(told);
    if (options.body) text += "\n" + shown_body(peeked.body, true, options.raw);
    first = false;
    return print(text);
  });
}

Result<int> run_job(const PeekOptions& options) {
  const auto ids = read_ids(options.ids);
  if (!ids) return fail(kExitBadInput, ids.error().message);
  return look_or_watch(
      options.server, "job", options.watch, options.json,
      [&](client::Connection& connection) { return show_jobs(connection, *ids, options); });
}

constexpr std::array kPeekOptions{
    ids_option<&PeekOptions::ids>(true),
    server_option<&PeekOptions::server>(),
    kMaxReplyOption,
    option<&PeekOptions::ready>(
        {.names = "--ready", .help = "The job that would be reserved next"}),
    option<&PeekOptions::delayed>({.names = "--delayed", .help = "The job whose delay ends next"}),
    option<&PeekOptions::buried>(
        {.names = "--buried", .help = "The job that would be kicked next"}),
    option<&PeekOptions::reserved>(
        {.names = "--reserved", .help = "The job that a client has held longest"}),
    option<&PeekOptions::tube>({.names = "-t,--tube",
                                .type = kTube,
                                .help = "Of this tube",
                                .shows_default = true,
                                .excludes = {"ID"}}),
    json_option<&PeekOptions::json>(),
    raw_option<&PeekOptions::raw>(),
};

constexpr std::string_view kPeekFooter =
    R"(The bytes of a body are printed as they are; of several jobs each body is
followed by a line end. On a terminal control characters are shown as \x1b, and
each body ends its line. With --ready, --delayed, --buried or --reserved a word
that is no id is the tube. The server must have peek-reserved for --reserved:
beanstalkd has not.

examples:
  tubectl peek 3
  tubectl peek --ready --tube mail
  tubectl peek --ready mail
  tubectl peek --reserved mail
  tubectl peek --buried --json)";

constexpr std::array kJobOptions{
    ids_option<&PeekOptions::ids>(false, true),
    server_option<&PeekOptions::server>(),
    kMaxReplyOption,
    option<&PeekOptions::body>({.names = "--body", .help = "The bodies as well"}),
    watch_option<&PeekOptions::watch>(),
    json_option<&PeekOptions::json>(),
    raw_option<&PeekOptions::raw>(),
};

}  // namespace

const Subcommand& peek_command() {
  static constexpr Subcommand kCommand =
      runs<PeekOptions, run_peek>({.name = "peek",
                                   .group = kLookGroup,
                                   .summary = "Show the bodies of jobs, which stay as they are",
                                   .options = kPeekOptions,
                                   .footer = kPeekFooter,
                                   .usage = "[OPTIONS] ID...\n[OPTIONS] "
                                            "--ready | --delayed | --buried | --reserved [TUBE]"});
  return kCommand;
}

const Subcommand& job_command() {
  static constexpr Subcommand kCommand =
      runs<PeekOptions, run_job>({.name = "job",
                                  .group = kLookGroup,
                                  .summary = "Show what the server knows of jobs",
                                  .options = kJobOptions,
                                  .footer = R"(examples:
  tubectl job 3
  tubectl job 7 8 --json
  tubectl job 3 --body)"});
  return kCommand;
}

}  // namespace tubed::tubectl
