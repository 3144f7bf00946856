// tubectl delete, release, bury, kick, reprioritize: change jobs by their ids.
//
// delete, delete-force, kick-job and reprioritize need no reservation, so for_each_id() pipelines
// one command per id. The protocol allows only the client that has reserved a job to release or
// bury it, so for_each_held() works in batches of kHeldAtOnce:
// 1. hold() sends reserve-job and stats-job for each id of the batch.
// 2. For each job that it now holds, it builds the command with the priority from the stats, unless
//    the user gives another priority.
// 3. The commands are sent, and their replies are counted.
// When the connection closes at the end, jobs that were reserved but not released or buried become
// ready again.
#include <algorithm>
#include <functional>
#include <span>
#include <variant>

#include <fmt/format.h>

#include "client/event_loop.h"
#include "client/pipeline.h"
#include "client/stats_block.h"
#include "client/times.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/jobs/capabilities.h"
#include "tubectl/jobs/filters.h"
#include "tubectl/jobs/ids.h"
#include "tubectl/json.h"
#include "tubectl/snapshot.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

// Number of jobs held at a time to be released or buried: small enough that no TTR expires.
constexpr std::size_t kHeldAtOnce = 64;

// A larger number of jobs of a tube is kicked in steps of this number.
constexpr std::uint64_t kKickedAtOnce = 10'000;

struct ByIdOptions {
  Server server;
  std::vector<std::string> ids;
  std::optional<Priority> priority;
  std::chrono::milliseconds delay{0};
  std::string tube;
  bool all = false;
  std::optional<std::string> state;
  JobFilters filters;  // with a tube
  bool force = false;
  bool json = false;
};

// Counts replies, and prints a line with the id for each refusal as it arrives.
struct Results {
  std::uint64_t done = 0;
  std::uint64_t failed = 0;

  void take(JobId id, const client::Reply& answer, std::string_view expected,
            std::string_view not_found = kNoSuchJob) {
    if (answer.is(expected)) {
      ++done;
    } else {
      refuse(id, answer, not_found);
    }
  }
  void refuse(JobId id, const client::Reply& answer, std::string_view not_found = kNoSuchJob) {
    ++failed;
    refused(fmt::format("job {}", id), answer, not_found);
  }
};

// The work with the jobs of `ids`, in their order: how far it is, and whether a signal stopped it.
class Steps {
 public:
  Steps(std::string_view subcommand, const std::vector<JobId>& ids)
      : ids_(ids), progress_(std::string(subcommand), ids.size()) {
    client::set_flag_on_stop_signals();
  }

  static bool stopped() { return client::stop_requested(); }
  void show(std::size_t done) { progress_.show(done); }
  // Returns 0, or the exit code after printing where to go on after `done` jobs.
  int report(std::size_t done) const {
    if (done >= ids_.size()) return 0;
    return fail(kExitFailure, fmt::format("interrupted after {} of {} jobs; the next is {}", done,
                                          ids_.size(), ids_[done]));
  }

 private:
  const std::vector<JobId>& ids_;
  Progress progress_;
};

// `what` is the JSON key of the count, such as "deleted". Returns the exit code: kExitFailure if
// any job was refused.
int print_results(const Results& results, const char* what, bool json) {
  if (json) {
    const Json summary = {{what, results.done}, {"failed", results.failed}};
    if (const int code = print(to_line(summary) + "\n"); code != 0) return code;
  }
  return results.failed == 0 ? 0 : kExitFailure;
}

// The command that for_each_id() sends for each job.
struct IdAction {
  std::string_view subcommand;
  std::string_view command;
  std::string_view expected;
  const char* what;
  std::string_view not_found;     // the meaning of NOT_FOUND
  std::string_view capability{};  // required of the server; empty: none
  std::string_view form{};        // the form that needs it, named in the failure
  std::string arguments{};        // after the id, each preceded by a space
};

// Sends one command for each job, pipelined.
Result<int> for_each_id(const ByIdOptions& options, const IdAction& action) {
  const auto ids = read_ids(options.ids);
  if (!ids) return fail(kExitBadInput, ids.error().message);
  auto connection = TRY(connect(options.server));
  if (const auto known = demand_time(connection, action.subcommand, options.delay);
      !known || *known != 0) {
    return known;
  }
  if (!action.capability.empty()) {
    const auto known =
        demand_capability(connection, action.subcommand, action.capability, action.form);
    if (!known || *known != 0) return known;
  }
  Results results;
  Steps steps(action.subcommand, *ids);
  std::size_t asked = 0;
  std::size_t answered = 0;
  TRY(pipelined(
      connection,
      [&](std::string& commands) {
        if (asked == ids->size() || Steps::stopped()) return false;
        commands += fmt::format("{} {}{}\r\n", action.command, (*ids)[asked++], action.arguments);
        return true;
      },
      [&](const client::Reply& answer) -> Result<void> {
        results.take((*ids)[answered++], answer, action.expected, action.not_found);
        steps.show(answered);
        return {};
      }));
  const int code = print_results(results, action.what, options.json);
  return std::max(code, steps.report(answered));
}

// Only the client that holds a job may release or bury it, so it is reserved first. The server
// replies NOT_FOUND both for a missing job and for a job of another client; stats-job in hold()
// distinguishes them.
struct HeldAction {
  std::string_view subcommand;
  std::string_view expected;
  const char* what;
  // Returns the command for a job with that priority.
  std::function<std::string(JobId, std::uint64_t)> command;
};

// Reserves the jobs of the batch and appends the command for each job that is now held to
// `commands`.
Result<std::vector<JobId>> hold(client::Connection& connection, std::span<const JobId> batch,
                                const HeldAction& action, std::string& commands, Results& results) {
  std::string asked;
  for (const JobId id : batch) asked += fmt::format("reserve-job {0}\r\nstats-job {0}\r\n", id);
  TRY(connection.send(asked));
  std::vector<JobId> held;
  for (const JobId id : batch) {
    const auto reserved = TRY(connection.receive());
    const auto job = TRY(connection.receive());
    const client::StatsBlock stats(job.body);
    if (reserved.is("RESERVED")) {
      if (!job.is("OK")) {
        // The priority is unknown, so the job returns unchanged when the connection ends.
        results.refuse(id, job);
        continue;
      }
      held.push_back(id);
      commands += action.command(id, stats.count("pri"));
    } else if (stats.text("state") == "reserved") {
      ++results.failed;
      fail(kExitFailure, fmt::format("job {}: another client holds it", id));
    } else {
      results.refuse(id, reserved);
    }
  }
  return held;
}

Result<int> for_each_held(const ByIdOptions& options, const HeldAction& action) {
  const auto ids = read_ids(options.ids);
  if (!ids) return fail(kExitBadInput, ids.error().message);
  auto connection = TRY(connect(options.server));
  const auto known = demand_time(connection, action.subcommand, options.delay);
  if (!known || *known != 0) return known;
  Results results;
  Steps steps(action.subcommand, *ids);
  std::span<const JobId> rest = ids.value();
  while (!rest.empty() && !Steps::stopped()) {
    const auto batch = rest.first(std::min(rest.size(), kHeldAtOnce));
    rest = rest.subspan(batch.size());
    std::string commands;
    const auto held = TRY(hold(connection, batch, action, commands, results));
    TRY(connection.send(commands));
    for (const JobId id : held) {
      const auto answer = TRY(connection.receive());
      results.take(id, answer, action.expected);
    }
    steps.show(ids->size() - rest.size());
  }
  const int code = print_results(results, action.what, options.json);
  return std::max(code, steps.report(ids->size() - rest.size()));
}

Result<int> run_release(const ByIdOptions& options) {
  return for_each_held(
      options, {"release", "RELEASED", "released", [&options](JobId id, std::uint64_t own) {
                  return fmt::format("release {} {} {}\r\n", id, options.priority.value_or(own),
                                     client::time_argument(options.delay));
                }});
}

Result<int> run_bury(const ByIdOptions& options) {
  return for_each_held(options,
                       {"bury", "BURIED", "buried", [&options](JobId id, std::uint64_t own) {
                          return fmt::format("bury {} {}\r\n", id, options.priority.value_or(own));
                        }});
}

// With a tube, the only word is a number of jobs, not an id.
std::optional<std::uint32_t> kick_bound(const ByIdOptions& options) {
  if (options.all) return options.ids.empty() ? std::optional(UINT32_MAX) : std::nullopt;
  if (options.ids.size() != 1) return std::nullopt;
  const auto bound = id_of(options.ids.front());
  if (!bound || *bound > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*bound);
}

// Builds the command that kicks. A server without kick-tube kicks jobs of the used tube, so this
// sends `use`, which creates the tube. Returns 0, or the exit code of a failure.
Result<int> prepare_kick(client::Connection& connection, const ByIdOptions& options,
                         std::uint32_t bound, std::string& command) {
  const auto server = TRY(Capabilities::of(connection));
  if (server.has("kick-tube")) {
    const std::string state = options.state ? " " + *options.state : "";
    command = fmt::format("kick-tube {} {}{}", options.tube, bound, state);
    return 0;
  }
  if (options.state) {
    return fail(kExitFailure, "kick: --state needs kick-tube, which the server does not know");
  }
  command = fmt::format("kick {}", bound);
  return demand(connection, fmt::format("use {}", options.tube), "USING");
}

// Kicks at most `bound` jobs of the tube that match the filters: it lists them, a page at a time,
// and kicks them by their ids.
Result<std::uint64_t> kick_found(client::Connection& connection, const ByIdOptions& options,
                                 std::uint64_t bound, client::Reply& refusal) {
  std::string state = options.state.value_or("");
  if (state.empty()) {
    const auto counts = TRY(take_snapshot(connection, {options.tube}));
    const TubeCounts* const tube = counts.find(options.tube);
    state = tube != nullptr && tube->buried > 0 ? "buried" : "delayed";
  }
  client::set_flag_on_stop_signals();
  ListedJobs found(connection, options.tube, state, options.filters);
  std::uint64_t kicked = 0;
  for (std::uint64_t left = bound; left > 0 && refusal.line.empty();) {
    const auto jobs = TRY(found.next(left));
    if (jobs.empty()) break;
    left -= jobs.size();
    TRY(ask_each(
        connection, jobs.size(),
        [&](std::size_t i, std::string& commands) {
          commands += fmt::format("kick-job {}\r\n", jobs[i].id);
        },
        [&](std::size_t, client::Reply&& answer) {
          if (answer.is("KICKED")) {
            ++kicked;
          } else if (!answer.is("NOT_FOUND") && refusal.line.empty()) {
            refusal = std::move(answer);
          }
        }));
  }
  if (refusal.line.empty()) refusal = found.refusal();
  return kicked;
}

int print_kicked(const ByIdOptions& options, std::uint64_t kicked) {
  const Json summary = {{"kicked", kicked}};
  return print(options.json ? to_line(summary) + "\n" : fmt::format("{}\n", kicked));
}

Result<int> kick_some_of_tube(const ByIdOptions& options, std::uint64_t bound) {
  auto connection = TRY(connect(options.server));
  const auto known = demand_capability(connection, "kick", kFilterCapability, kFilterForm);
  if (!known || *known != 0) return known;
  client::Reply refusal;
  const auto kicked = TRY(kick_found(connection, options, bound, refusal));
  if (const int code = print_kicked(options, kicked); code != 0) return code;
  if (!refusal.line.empty()) return refused("kick", refusal);
  if (!client::stop_requested()) return 0;
  return fail(kExitFailure, "interrupted: the other jobs are where they were");
}

// Kicks many jobs in steps, to show the progress and to end between two of them. The steps name the
// state: without it, a step after the last buried job would kick delayed jobs. `stats` is of the
// tube. Returns the number of jobs, or the reply that refuses it. Precondition: the server has
// kick-tube.
Result<std::variant<std::uint64_t, client::Reply>> kick_in_steps(client::Connection& connection,
                                                                 const ByIdOptions& options,
                                                                 std::uint64_t bound,
                                                                 const client::StatsBlock& stats) {
  using CountOrRefusal = std::variant<std::uint64_t, client::Reply>;
  const bool has_buried = stats.count("current-jobs-buried") > 0;
  const std::string state = options.state.value_or(has_buried ? "buried" : "delayed");
  bound = std::min(bound, stats.count("current-jobs-" + state));
  client::set_flag_on_stop_signals();
  Progress progress("kicking", bound);
  std::uint64_t kicked = 0;
  while (kicked < bound && !client::stop_requested()) {
    const std::uint64_t step = std::min(bound - kicked, kKickedAtOnce);
    auto answer = TRY(connection.ask(fmt::format("kick-tube {} {} {}", options.tube, step, state)));
    if (!answer.is("KICKED")) return CountOrRefusal(std::move(answer));
    kicked += answer.number();
    if (answer.number() < step) break;
    progress.show(kicked);
  }
  return CountOrRefusal(kicked);
}

Result<int> kick_many(client::Connection& connection, const ByIdOptions& options,
                      std::uint64_t bound, const client::StatsBlock& stats) {
  const auto result = TRY(kick_in_steps(connection, options, bound, stats));
  if (const auto* const answer = std::get_if<client::Reply>(&result)) {
    return refused("kick", *answer);
  }
  const int code = print_kicked(options, std::get<std::uint64_t>(result));
  if (code != 0 || !client::stop_requested()) return code;
  return fail(kExitFailure, "interrupted: the same command kicks the other jobs");
}

Result<int> kick_tube(const ByIdOptions& options) {
  const auto bound = kick_bound(options);
  if (!bound) {
    return fail(kExitUsage,
                "say how many jobs of the tube, from 0 to 4294967295, or --all; "
                "try tubectl kick --help");
  }
  if (options.filters.any()) return kick_some_of_tube(options, options.all ? UINT64_MAX : *bound);
  auto connection = TRY(connect(options.server));
  if (*bound > kKickedAtOnce && TRY(Capabilities::of(connection)).has("kick-tube")) {
    // Without the numbers of the tube, a single command kicks the jobs.
    const auto tube = TRY(connection.ask(fmt::format("stats-tube {}", options.tube)));
    const client::StatsBlock stats(tube.body);
    const std::uint64_t most =
        std::max(stats.count("current-jobs-buried"), stats.count("current-jobs-delayed"));
    if (tube.is("OK") && most > kKickedAtOnce) return kick_many(connection, options, *bound, stats);
  }
  std::string command;
  const auto prepared = prepare_kick(connection, options, *bound, command);
  if (!prepared || *prepared != 0) return prepared;
  const auto answer = TRY(connection.ask(command));
  if (!answer.is("KICKED")) return refused("kick", answer);
  return print_kicked(options, answer.number());
}

// Takes the first word as the tube unless it is an id.
void take_tube_from_words(ByIdOptions& options) {
  if (!options.tube.empty() || options.ids.empty() || is_id_or_stdin(options.ids.front())) return;
  options.tube = options.ids.front();
  options.ids.erase(options.ids.begin());
}

Result<int> run_kick(ByIdOptions& options) {
  take_tube_from_words(options);
  if (!options.tube.empty()) {
    if (options.delay.count() == 0) return kick_tube(options);
    return fail(kExitUsage, "--delay is only for jobs by their ids; try tubectl kick --help");
  }
  if (const auto tube = std::ranges::find_if_not(options.ids, is_id_or_stdin);
      tube != options.ids.end()) {
    return fail(kExitUsage, fmt::format("{}; a tube is the first word: tubectl kick {} N",
                                        not_an_id(*tube).message, *tube));
  }
  if (options.ids.empty() || options.all || options.state || options.filters.any()) {
    return fail(kExitUsage, "say which jobs, or which tube; try tubectl kick --help");
  }
  IdAction action{"kick", "kick-job", "KICKED", "kicked",
                  "there is no such job, or it is neither buried nor delayed"};
  if (options.delay.count() > 0) {
    action.capability = "kick-job:delay";
    action.form = "kick-job with a delay";
    action.arguments = fmt::format(" {}", client::time_argument(options.delay));
  }
  return for_each_id(options, action);
}

Result<int> run_delete(const ByIdOptions& options) {
  if (options.force) {
    return for_each_id(options, {.subcommand = "delete",
                                 .command = "delete-force",
                                 .expected = "DELETED",
                                 .what = "deleted",
                                 .not_found = kNoSuchJob,
                                 .capability = "delete-force",
                                 .form = "delete-force"});
  }
  return for_each_id(options, {"delete", "delete", "DELETED", "deleted",
                               "there is no such job, or another client has it"});
}

Result<int> run_reprioritize(const ByIdOptions& options) {
  return for_each_id(options, {.subcommand = "reprioritize",
                               .command = "reprioritize",
                               .expected = "REPRIORITIZED",
                               .what = "reprioritized",
                               .not_found = kNoSuchJob,
                               .capability = "reprioritize",
                               .form = "reprioritize",
                               .arguments = fmt::format(" {}", options.priority.value_or(0))});
}

// Rows shared by the five subcommands.
constexpr OptionRow kIds = ids_option<&ByIdOptions::ids>(false, true);
constexpr OptionRow kServer = server_option<&ByIdOptions::server>();
constexpr OptionRow kJson = json_option<&ByIdOptions::json>();
constexpr OptionRow kPriority =
    priority_option<&ByIdOptions::priority>("A new priority [the job's own]");

constexpr std::array kDeleteOptions{
    kIds, kServer, kMaxReplyOption, kJson,
    option<&ByIdOptions::force>({.names = "--force", .help = "Also jobs that other clients hold"})};
constexpr std::array kReleaseOptions{
    kIds,
    kServer,
    kMaxReplyOption,
    kJson,
    kPriority,
    delay_option<&ByIdOptions::delay>("Make them ready after this time [at once]")};
constexpr std::array kReprioritizeOptions{
    option<&ByIdOptions::priority>({.names = "PRI",
                                    .type = count(0, UINT32_MAX, "PRI"),
                                    .help = "The new priority; smaller is more urgent",
                                    .required = true}),
    kIds, kServer, kMaxReplyOption, kJson};
constexpr std::array kBuryOptions{kIds, kServer, kMaxReplyOption, kJson, kPriority};
constexpr std::array<std::string_view, 2> kKickedStates{"buried", "delayed"};
constexpr std::array kKickOptions{
    ids_option<&ByIdOptions::ids>(true),
    kServer,
    kMaxReplyOption,
    kJson,
    option<&ByIdOptions::tube>(
        {.names = "-t,--tube", .type = kTube, .help = "Kick this number of jobs of the tube"}),
    option<&ByIdOptions::all>(
        {.names = "--all", .help = "With --tube: all buried jobs, or else all delayed jobs"}),
    option<&ByIdOptions::state>(
        {.names = "--state",
         .type = choice("STATE", kKickedStates),
         .help = "With --tube: only jobs in this state [buried jobs, or else delayed jobs]"}),
    grep_option<&ByIdOptions::filters>(),
    older_option<&ByIdOptions::filters>(),
    newer_option<&ByIdOptions::filters>(),
    priority_over_option<&ByIdOptions::filters>(),
    priority_below_option<&ByIdOptions::filters>(),
    failures_option<&ByIdOptions::filters>(),
    tag_option<&ByIdOptions::filters>(),
    option<&ByIdOptions::delay>({.names = "-d,--delay",
                                 .type = milliseconds(),
                                 .help = "Delay the jobs by this time from now [ready at once]",
                                 .excludes = {"--tube", "--all", "--state"}})};

}  // namespace

const Subcommand& delete_command() {
  static constexpr Subcommand kCommand = runs<ByIdOptions, run_delete>(
      {.name = "delete",
       .group = kWorkGroup,
       .summary = "Delete jobs",
       .options = kDeleteOptions,
       .footer = R"(Without --force a job that another client holds is not deleted. With it, the
client gets NOT_FOUND when it deletes or releases the job. The server must have
delete-force: beanstalkd has not.

examples:
  tubectl delete 3
  tubectl delete 7 8
  tubectl delete --force 9
  echo 12 13 | tubectl delete -)"});
  return kCommand;
}

const Subcommand& release_command() {
  static constexpr Subcommand kCommand = runs<ByIdOptions, run_release>(
      {.name = "release",
       .group = kWorkGroup,
       .summary = "Make jobs that no client holds ready, or delay them",
       .options = kReleaseOptions,
       .footer = R"(examples:
  tubectl release 3
  tubectl release 7 8 --delay 3600
  echo 12 13 | tubectl release --priority 0 -)"});
  return kCommand;
}

const Subcommand& bury_command() {
  static constexpr Subcommand kCommand =
      runs<ByIdOptions, run_bury>({.name = "bury",
                                   .group = kWorkGroup,
                                   .summary = "Bury jobs that no client holds",
                                   .options = kBuryOptions,
                                   .footer = R"(examples:
  tubectl bury 3
  tubectl bury 7 8 --priority 100)"});
  return kCommand;
}

const Subcommand& kick_command() {
  static constexpr Subcommand kCommand = runs<ByIdOptions, run_kick>(
      {.name = "kick",
       .group = kWorkGroup,
       .summary = "Make buried and delayed jobs ready",
       .options = kKickOptions,
       .footer =
           R"(With a tube, as the first word or by --tube, N is the number of jobs. If the tube has buried jobs, only buried jobs are
kicked, otherwise delayed jobs. Prints how many were kicked. Filters are for the jobs
of a tube. The server must have kick-job with a delay for --delay, kick-tube for
--state, and list-jobs with filters for a filter: beanstalkd has none of these.

examples:
  tubectl kick 4
  tubectl kick --delay 10m 8
  tubectl kick --tube mail 10
  tubectl kick --tube mail --all --state delayed
  tubectl kick images --all
  tubectl kick images --all --state buried --grep 'timed out')",
       .usage = "[OPTIONS] ID...\n[OPTIONS] TUBE N | TUBE --all"});
  return kCommand;
}

const Subcommand& reprioritize_command() {
  static constexpr Subcommand kCommand = runs<ByIdOptions, run_reprioritize>(
      {.name = "reprioritize",
       .group = kWorkGroup,
       .summary = "Give another priority to jobs that no client holds",
       .options = kReprioritizeOptions,
       .footer = R"(The state of a job and its delay stay. The server must have reprioritize:
beanstalkd has not.

examples:
  tubectl reprioritize 0 3
  tubectl reprioritize 100 7 8
  echo 12 13 | tubectl reprioritize 100 -)"});
  return kCommand;
}

}  // namespace tubed::tubectl
