// tubectl work: runs a command for each job.
#include <algorithm>
#include <csignal>
#include <memory>

#include <fmt/format.h>
#include <sys/resource.h>

#include "client/event_loop.h"
#include "client/system_error.h"
#include "tubectl/exit_codes.h"
#include "tubectl/subcommand.h"
#include "tubectl/values.h"
#include "tubectl/work/command.h"
#include "tubectl/work/crew.h"
#include "tubectl/work/report.h"
#include "tubectl/work/slot.h"

namespace tubed::tubectl {
namespace {

using work::CommandLine;
using work::Crew;
using work::Fate;
using work::Report;
using work::Shift;

constexpr std::size_t kMostSlots = 1000;
// Those of the process itself, and those that come and go when a command is started.
constexpr rlim_t kSpareDescriptors = 32;

constexpr std::string_view kWorkFooter =
    R"(COMMAND has the job's body on its standard input, and in its environment
TUBED_JOB_ID, TUBED_TUBE, TUBED_PRIORITY, TUBED_TTR, TUBED_RESERVES (1 the first
time) and TUBED_RELEASES. It keeps the job for as long as it runs. When it exits
with 0 the job is deleted, else --on-failure says what becomes of it.

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
  Shift shift;
  std::string on_failure = "release";
  double longest_run = 0;
  double kill_after = 10;
  std::uint64_t jobs = 0;
  std::uint32_t idle_seconds = 0;
  bool verbose = false;
  bool quiet = false;
  bool json = false;
  std::string program;
  const CLI::App* app = nullptr;
};

work::Clock::duration seconds_of(double seconds) {
  return std::chrono::duration_cast<work::Clock::duration>(std::chrono::duration<double>(seconds));
}

// The command, and what stands behind it as it is: CLI11 would take "[a,b]" apart.
Result<std::vector<std::string>> command_of(const WorkOptions& options) {
  std::vector<std::string> rest = options.app->remaining();
  if (!rest.empty() && rest.front() == "--") {
    rest.erase(rest.begin());
  } else if (!rest.empty() && rest.front().starts_with('-')) {
    return Error{no_such_option(*options.app, rest.front())};
  }
  rest.insert(rest.begin(), options.program);
  return rest;
}

Result<void> complete_plan(WorkOptions& options) {
  work::Plan& plan = options.plan;
  plan.command_line.words = TRY(command_of(options));
  plan.server = TRY(client::parse_address(options.server.text));
  if (plan.tubes.empty()) plan.tubes.emplace_back(kDefaultTube);
  plan.policy.on_failure = options.on_failure == "bury"     ? Fate::bury
                           : options.on_failure == "delete" ? Fate::delete_job
                                                            : Fate::release;
  if (options.app->count("--max-run") > 0) plan.longest_run = seconds_of(options.longest_run);
  plan.kill_after = seconds_of(options.kill_after);
  if (options.app->count("--exit-when-idle") > 0) plan.wait_seconds = options.idle_seconds;
  if (options.app->count("--count") > 0) options.shift.jobs = options.jobs;
  return {};
}

// For one word that a shell would take apart, as "cat | wc -c".
std::string hint_at_shell(const std::vector<std::string>& words) {
  const std::string& word = words.front();
  if (words.size() > 1 || word.find_first_of(" |&;<>$") == word.npos) return "";
  if (word.find('\'') != word.npos) return "; a shell takes it after: sh -c";
  return fmt::format("; a shell takes it as: sh -c '{}'", word);
}

// Two for each slot, its connection and its command. The commands get back what was before.
Result<void> raise_descriptor_limit(std::size_t slots, CommandLine& command_line) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return client::system_error("cannot read the limits");
  command_line.descriptor_limit = limit.rlim_cur;
  const rlim_t needed = 2 * slots + kSpareDescriptors;
  if (limit.rlim_cur >= needed) return {};
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (limit.rlim_cur < needed || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Error{fmt::format("-j {} needs {} open files, and only {} are allowed (ulimit -Hn)",
                             slots, needed, limit.rlim_max)};
  }
  return {};
}

int run_work(WorkOptions& options) {
  if (const auto completed = complete_plan(options); !completed) {
    return fail(kExitUsage, fmt::format("{}; try tubectl work --help", completed.error().message));
  }
  CommandLine& command_line = options.plan.command_line;
  if (const auto reason = work::look_for(command_line.words.front())) {
    return fail(reason->exit_code, reason->reason + hint_at_shell(command_line.words));
  }
  if (auto raised = raise_descriptor_limit(options.shift.slots, command_line); !raised) {
    return fail(kExitUsage, raised.error().message);
  }
  auto signals = client::SignalInput::block({SIGINT, SIGTERM});
  if (!signals) return fail(kExitFailure, signals.error().message);
  command_line.signal_mask = signals->mask_before();
  const auto loudness = options.quiet     ? Report::Loudness::quiet
                        : options.verbose ? Report::Loudness::all
                                          : Report::Loudness::failures;
  const Report report(loudness, options.json);
  return Crew(options.plan, options.shift, report).run(*signals);
}

void add_failure_options(CLI::App& app, WorkOptions& options) {
  work::Policy& policy = options.plan.policy;
  app.add_option("--on-failure", options.on_failure, "What becomes of a job whose COMMAND failed")
      ->check(CLI::IsMember({"release", "bury", "delete"}))
      ->type_name("FATE")
      ->capture_default_str();
  app.add_option("--retries", policy.retries,
                 "Bury a job that fails when it was released so often before")
      ->type_name("N")
      ->transform(is_count(0))
      ->capture_default_str();
  app.add_option("--retry-delay", policy.first_delay_seconds,
                 "Delay of the first release; each further one is twice as long")
      ->type_name("TIME")
      ->transform(is_seconds())
      ->capture_default_str();
  app.add_option("--max-delay", policy.longest_delay_seconds, "Longest delay of a release")
      ->type_name("TIME")
      ->transform(is_seconds())
      ->capture_default_str();
  app.add_option("--bury-codes", policy.bury_codes,
                 "Exit codes of COMMAND that bury the job at once, with commas between")
      ->type_name("CODES")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(is_count(1, 255));
}

void add_end_options(CLI::App& app, WorkOptions& options) {
  constexpr double kLongest = 1e8;
  app.add_option("--max-run", options.longest_run, "End a COMMAND that runs longer: it has failed")
      ->type_name("TIME")
      ->transform(is_time(0.001, kLongest));
  app.add_option("--kill-after", options.kill_after,
                 "From the SIGTERM that ends a COMMAND to the SIGKILL")
      ->type_name("TIME")
      ->transform(is_time(0, kLongest))
      ->capture_default_str();
  app.add_option("--count", options.jobs, "End when COMMAND has run so often")
      ->type_name("N")
      ->transform(is_count(1, 1'000'000'000'000));
  app.add_option("--exit-when-idle", options.idle_seconds,
                 "End when no job has come for so long; 0: when none is ready")
      ->type_name("TIME")
      ->transform(is_seconds());
  app.add_flag("--wait", options.shift.wait_for_server,
               "Wait for the server at the beginning too, as when it goes away later");
}

}  // namespace

Subcommand add_work(CLI::App& parent) {
  const auto options = std::make_shared<WorkOptions>();
  CLI::App& app = *parent.add_subcommand("work", "Run a command for each job");
  options->app = &app;
  // What follows COMMAND is left as it is: command_of().
  app.prefix_command();
  app.add_option("COMMAND", options->program,
                 "What to run; write -- before it, its own arguments behind it")
      ->type_name("COMMAND")
      ->required();
  add_server_option(app, options->server);
  app.add_option("-t,--tube", options->plan.tubes,
                 "Take the jobs of this tube; may be repeated [default]")
      ->type_name("TUBE")
      ->allow_extra_args(false)
      ->check(is_tube());
  app.add_option("-j,--parallel", options->shift.slots, "How many COMMANDs may run at once")
      ->type_name("N")
      ->transform(is_count(1, kMostSlots))
      ->capture_default_str();
  add_failure_options(app, *options);
  add_end_options(app, *options);
  auto* const verbose =
      app.add_flag("-v,--verbose", options->verbose, "A line for each job on stderr");
  app.add_flag("-q,--quiet", options->quiet, "No line for failures and lost connections either")
      ->excludes(verbose);
  add_json_flag(app, options->json);
  app.get_option("--json")->description("Write these lines as JSON");
  app.footer(std::string(kWorkFooter));
  return Subcommand{&app, [options] { return run_work(*options); }};
}

}  // namespace tubed::tubectl
