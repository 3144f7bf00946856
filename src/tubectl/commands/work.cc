// tubectl work: runs a command for each job.
//
// This file turns the options into a Plan and RunLimits, checks what can be checked before the
// first job is reserved (the program exists, the process may open enough descriptors), and blocks
// the stop signals, which the WorkerPool reads from a signalfd. work/worker_pool.h and
// work/worker.h describe the run. A user's mistake must not cost a job: a command that cannot be
// started would return every job to the queue, so the program is looked up first.
#include <algorithm>
#include <csignal>

#include <fmt/format.h>
#include <sys/resource.h>

#include "client/event_loop.h"
#include "client/system_error.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/work/command.h"
#include "tubectl/work/report.h"
#include "tubectl/work/worker.h"
#include "tubectl/work/worker_pool.h"

namespace tubed::tubectl {
namespace {

using work::CommandLine;
using work::FailureAction;
using work::Report;
using work::RunLimits;
using work::WorkerPool;

constexpr std::size_t kMaxWorkers = 1000;
constexpr std::uint64_t kMaxBatch = 1000;  // of a reserve-batch
// Descriptors of the process itself, and those that are open while a command starts.
constexpr rlim_t kSpareDescriptors = 32;

constexpr std::string_view kWorkFooter =
    R"(COMMAND has the job's body on its standard input, and in its environment
TUBED_JOB_ID, TUBED_TUBE, TUBED_PRIORITY, TUBED_TTR, TUBED_RESERVES (1 the first
time) and TUBED_RELEASES. It keeps the job for as long as it runs. When it exits
with 0 the job is deleted; otherwise --on-failure decides.

SIGTERM or SIGINT: no new jobs; it ends when the commands have. Once more: the
commands are ended too, and their jobs go back.

examples:
  tubectl work -- sh -c 'cat >> jobs.log'
  tubectl work -t emails -t faxes -j 8 --verbose -- /usr/bin/env
  tubectl work --retries 3 --retry-delay 1m --bury-codes 64,65 -- ./convert
  tubectl work --exit-when-idle 0 --on-failure bury -- wc -c)";

struct WorkOptions {
  Server server;
  work::Plan plan;
  RunLimits limits;
  std::string on_failure = "release";
  std::optional<double> longest_run;
  double kill_after = 10;
  bool verbose = false;
  bool quiet = false;
  bool json = false;
  std::string program;
  std::vector<std::string> arguments;  // of the program
};

work::Clock::duration seconds_of(double seconds) {
  return std::chrono::duration_cast<work::Clock::duration>(std::chrono::duration<double>(seconds));
}

// Fills in the parts of the plan that the option rows cannot assign directly.
void complete_plan(WorkOptions& options) {
  work::Plan& plan = options.plan;
  plan.command_line.words = options.arguments;
  plan.command_line.words.insert(plan.command_line.words.begin(), options.program);
  plan.server = options.server.target;
  if (plan.tubes.empty()) plan.tubes.emplace_back(kDefaultTube);
  plan.policy.on_failure = options.on_failure == "bury"     ? FailureAction::bury
                           : options.on_failure == "delete" ? FailureAction::delete_job
                                                            : FailureAction::release;
  if (options.longest_run) plan.longest_run = seconds_of(*options.longest_run);
  plan.kill_after = seconds_of(options.kill_after);
}

// Returns a hint if the command is a single word for a shell, such as "cat | wc -c".
std::string hint_at_shell(const std::vector<std::string>& words) {
  const std::string& word = words.front();
  if (words.size() > 1 || word.find_first_of(" |&;<>$") == word.npos) return "";
  if (word.find('\'') != word.npos) return "; a shell takes it after: sh -c";
  return fmt::format("; a shell takes it as: sh -c '{}'", word);
}

// Each worker needs two descriptors, for its connection and its command. The commands get the
// previous limit.
Result<void> raise_descriptor_limit(std::size_t workers, CommandLine& command_line) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return client::system_error("cannot read the limits");
  command_line.descriptor_limit = limit.rlim_cur;
  const rlim_t needed = 2 * workers + kSpareDescriptors;
  if (limit.rlim_cur >= needed) return {};
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (limit.rlim_cur < needed || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Error{fmt::format("-j {} needs {} open files, and only {} are allowed (ulimit -Hn)",
                             workers, needed, limit.rlim_max)};
  }
  return {};
}

Result<int> run_work(WorkOptions& options) {
  complete_plan(options);
  CommandLine& command_line = options.plan.command_line;
  if (const auto reason = work::look_for(command_line.words.front())) {
    return fail(reason->exit_code, reason->reason + hint_at_shell(command_line.words));
  }
  if (auto raised = raise_descriptor_limit(options.limits.workers, command_line); !raised) {
    return fail(kExitUsage, raised.error().message);
  }
  auto signals = client::SignalInput::block({SIGINT, SIGTERM});
  if (!signals) return fail(kExitFailure, signals.error().message);
  command_line.signal_mask = signals->mask_before();
  const auto verbosity = options.quiet     ? Report::Verbosity::quiet
                         : options.verbose ? Report::Verbosity::all
                                           : Report::Verbosity::failures;
  const Report report(verbosity, options.json);
  return WorkerPool(options.plan, options.limits, report).run(*signals);
}

constexpr std::array<std::string_view, 3> kFailureActions{"release", "bury", "delete"};
constexpr double kLongestTime = 1e8;

constexpr std::array kWorkOptions{
    option<&WorkOptions::program>(
        {.names = "COMMAND",
         .type = {ValueType::Kind::command, "COMMAND"},
         .help = "The command to run; write -- before it, and its own arguments after it",
         .required = true}),
    server_option<&WorkOptions::server>(),
    kMaxReplyOption,
    option<&WorkOptions::plan, &work::Plan::tubes>(
        {.names = "-t,--tube",
         .type = kTube,
         .help = "Take the jobs of this tube; may be repeated [default]"}),
    option<&WorkOptions::limits, &work::RunLimits::workers>(
        {.names = "-j,--parallel",
         .type = count(1, kMaxWorkers),
         .help = "How many COMMANDs may run at once",
         .shows_default = true}),
    option<&WorkOptions::plan, &work::Plan::batch>(
        {.names = "--batch",
         .type = count(1, kMaxBatch),
         .help = "How many jobs to reserve at once, if the server has reserve-batch",
         .shows_default = true}),
    option<&WorkOptions::on_failure>({.names = "--on-failure",
                                      .type = choice("ACTION", kFailureActions),
                                      .help = "The action for a job whose COMMAND failed",
                                      .shows_default = true}),
    option<&WorkOptions::plan, &work::Plan::policy, &work::Policy::retries>(
        {.names = "--retries",
         .type = count(0),
         .help = "Bury a job that fails when it was released so often before",
         .shows_default = true}),
    option<&WorkOptions::plan, &work::Plan::policy, &work::Policy::first_delay_seconds>(
        {.names = "--retry-delay",
         .type = seconds(),
         .help = "Delay of the first release; each further one is twice as long",
         .shows_default = true}),
    option<&WorkOptions::plan, &work::Plan::policy, &work::Policy::longest_delay_seconds>(
        {.names = "--max-delay",
         .type = seconds(),
         .help = "Longest delay of a release",
         .shows_default = true}),
    option<&WorkOptions::plan, &work::Plan::policy, &work::Policy::bury_codes>(
        {.names = "--bury-codes",
         .type = count(1, 255, "CODES"),
         .help = "Exit codes of COMMAND that bury the job at once, with commas between",
         .separator = ','}),
    option<&WorkOptions::longest_run>({.names = "--max-run",
                                       .type = time(0.001, kLongestTime),
                                       .help = "End a COMMAND that runs longer: it has failed"}),
    option<&WorkOptions::kill_after>({.names = "--kill-after",
                                      .type = time(0, kLongestTime),
                                      .help = "From the SIGTERM that ends a COMMAND to the SIGKILL",
                                      .shows_default = true}),
    option<&WorkOptions::limits, &work::RunLimits::jobs>(
        {.names = "--count",
         .type = count(1, 1'000'000'000'000),
         .help = "End after this number of runs of COMMAND"}),
    option<&WorkOptions::plan, &work::Plan::wait_seconds>(
        {.names = "--exit-when-idle",
         .type = seconds(),
         .help = "End when no job was ready for this time; 0: when none is ready"}),
    option<&WorkOptions::limits, &work::RunLimits::wait_for_server>(
        {.names = "--wait",
         .help = "Wait for the server at the beginning too, as when it goes away later"}),
    option<&WorkOptions::verbose>(
        {.names = "-v,--verbose", .help = "A line for each job on stderr"}),
    option<&WorkOptions::quiet>({.names = "-q,--quiet",
                                 .help = "No line for failures and lost connections either",
                                 .excludes = {"--verbose"}}),
    json_option<&WorkOptions::json>("Write these lines as JSON"),
};

std::vector<std::string>& program_arguments(void* options) {
  return static_cast<WorkOptions*>(options)->arguments;
}

}  // namespace

const Subcommand& work_command() {
  static constexpr Subcommand kCommand =
      runs<WorkOptions, run_work>({.name = "work",
                                   .group = kWorkGroup,
                                   .summary = "Run a command for each job",
                                   .options = kWorkOptions,
                                   .footer = kWorkFooter,
                                   .usage = "[OPTIONS] -- COMMAND [ARGUMENT...]",
                                   .program_arguments = program_arguments});
  return kCommand;
}

}  // namespace tubed::tubectl
