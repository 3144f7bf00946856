// tubectl bench: generates load and measures how the server handles it.
//
// make_plan() checks that the options fit the workload and fills the Plan, bench/load.h runs it,
// and bench/report.h prints the figures. A run ends after a time, after a number of jobs, or at
// whichever comes first. Only runs that end by time have a warm-up, which is not measured.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include "tubectl/bench/load.h"
#include "tubectl/bench/pipe.h"
#include "tubectl/bench/report.h"
#include "tubectl/bench/workloads.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"

namespace tubed::tubectl {
namespace {

using bench::Clock;
using bench::Work;

constexpr std::uint64_t kReserveJobs = 100'000;
constexpr double kSeconds = 3;
constexpr std::array<std::string_view, 4> kWorkloads{"put", "reserve", "cycle", "pipe"};
constexpr std::size_t kMaxClients = 100'000;
constexpr double kLongestRun = 1e7;

constexpr std::string_view kBenchFooter = R"(workloads:
  put      put jobs, which stay in the queue
  reserve  reserve and delete jobs that were put before, until all are gone
  cycle    put, reserve and delete in turn; with K in flight, K/3 jobs a batch
  pipe     producers put, consumers wait for jobs and delete them; the latency
           is from before the put until the consumer has the job

The latency of the others is that of a command. pipe and cycle want tubes without
jobs of others, and leave none behind. Ctrl-C ends a run early and prints what
was measured.

examples:
  tubectl bench put
  tubectl bench put --jobs 100000 --in-flight 16 --body 1000
  tubectl bench reserve --jobs 100000 --no-fill
  tubectl bench cycle --clients 8 --in-flight 30 --tubes 4 --seconds 10
  tubectl bench pipe --producers 10 --consumers 1000 --rate 5000
  tubectl bench put --server unix:/run/tubed/tubed.sock --json)";

// The parsed command line. `plan` holds the values that need no further checks; the other members
// are optional where make_plan() must know whether the user gave the option.
struct BenchOptions {
  bench::Plan plan;
  std::string work;
  Server server;
  std::optional<std::size_t> producers;
  std::optional<std::size_t> consumers;
  std::optional<double> seconds;
  std::optional<double> warm_up;
  std::optional<std::uint64_t> jobs;
  std::optional<double> rate;
  bool no_fill = false;
  bool json = false;
  bool quiet = false;
  std::string latencies;
};

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Result<Work> work_of(const std::string& name) {
  for (const Work work : {Work::put, Work::reserve, Work::cycle, Work::pipe}) {
    if (bench::name_of(work) == name) return work;
  }
  return Error{fmt::format("there is no workload \"{}\", but put, reserve, cycle and pipe", name)};
}

// Rejects options that belong to another workload.
Result<void> check_workload(const BenchOptions& options) {
  struct Own {
    const char* name;
    bool given;
    Work work;
  };
  const std::array own{Own{"--no-fill", options.no_fill, Work::reserve},
                       Own{"--producers", options.producers.has_value(), Work::pipe},
                       Own{"--consumers", options.consumers.has_value(), Work::pipe},
                       Own{"--rate", options.rate.has_value(), Work::pipe}};
  for (const Own& one : own) {
    if (one.given && options.plan.work != one.work) {
      return Error{fmt::format("{} is only for {}", one.name, bench::name_of(one.work))};
    }
  }
  const bench::Plan& plan = options.plan;
  if (options.warm_up && (options.jobs || plan.work == Work::reserve)) {
    return Error{"--warm-up is only for a run that ends by time"};
  }
  if (plan.work == Work::cycle && plan.in_flight > 1 &&
      plan.in_flight < bench::Cycles::kLeastBatch) {
    return Error{"cycle has one command in flight, or three and more"};
  }
  if (plan.work == Work::pipe && plan.body_bytes < bench::Pipe::kLeastBodyBytes) {
    return Error{fmt::format("the body of a pipe's job begins with the time: --body is at least {}",
                             bench::Pipe::kLeastBodyBytes)};
  }
  return {};
}

// Divides the clients evenly between producers and consumers, unless their numbers are given.
Result<void> share_out_clients(BenchOptions& options) {
  bench::Plan& plan = options.plan;
  if (plan.work != Work::pipe) return {};
  const std::size_t half = std::max<std::size_t>(1, plan.clients / 2);
  plan.producers = options.producers.value_or(half);
  const std::size_t consumers = options.consumers.value_or(half);
  plan.clients = plan.producers + consumers;
  if (std::min(plan.producers, plan.tubes) > consumers) {
    return Error{"there is a tube with a producer and without a consumer: have more --consumers"};
  }
  return {};
}

// Fails, with a message for the user, if options contradict each other or the workload.
Result<bench::Plan> make_plan(BenchOptions& options) {
  bench::Plan& plan = options.plan;
  auto work = TRY(work_of(options.work));
  plan.work = work;
  plan.server = options.server.target;
  TRY(check_workload(options));
  TRY(share_out_clients(options));
  plan.rate = options.rate.value_or(0);
  plan.jobs = options.jobs.value_or(plan.work == Work::reserve ? kReserveJobs : 0);
  if (plan.jobs == 0 || options.seconds) {
    plan.time = duration_of(options.seconds.value_or(kSeconds));
  }
  if (plan.jobs == 0) plan.warm_up = duration_of(options.warm_up.value_or(0));
  plan.fill = !options.no_fill;
  plan.each_latency = !options.latencies.empty();
  plan.progress = !options.quiet && ::isatty(STDERR_FILENO) == 1;
  return plan;
}

Result<int> run_bench(BenchOptions& options) {
  const auto plan = make_plan(options);
  if (!plan) {
    return fail(kExitUsage, fmt::format("{}; try tubectl bench --help", plan.error().message));
  }
  const auto figures = bench::run_load(plan.value());
  if (!figures) return fail(kExitFailure, figures.error().message);
  const auto text = options.json ? bench::as_json(plan.value(), figures.value())
                                 : bench::as_table(plan.value(), figures.value());
  if (const int code = print(text); code != 0) return code;
  if (options.latencies.empty()) return 0;
  const auto written = figures.value().latencies.write(options.latencies);
  return written ? 0 : fail(kExitIo, written.error().message);
}

constexpr std::array kBenchOptions{
    option<&BenchOptions::work>({.names = "WORKLOAD",
                                 .type = choice("WORKLOAD", kWorkloads),
                                 .help = "The workload; see below",
                                 .required = true}),
    server_option<&BenchOptions::server>(),
    kMaxReplyOption,
    option<&BenchOptions::plan, &bench::Plan::clients>({.names = "--clients",
                                                        .type = count(1, kMaxClients),
                                                        .help = "Connections",
                                                        .shows_default = true}),
    option<&BenchOptions::plan, &bench::Plan::in_flight>(
        {.names = "--in-flight",
         .type = count(1, 1'000'000),
         .help = "Commands that a client has sent and that are not answered; of pipe: puts",
         .shows_default = true}),
    option<&BenchOptions::plan, &bench::Plan::body_bytes>({.names = "--body",
                                                           .type = size(0, kMaxJobBytesCeiling),
                                                           .help = "Size of a job",
                                                           .shows_default = true}),
    option<&BenchOptions::plan, &bench::Plan::tubes>(
        {.names = "--tubes",
         .type = count(1, kMaxClients),
         .help = "Spread the clients over the tubes bench-0, bench-1, ...; 1 is the tube default",
         .shows_default = true}),
    option<&BenchOptions::plan, &bench::Plan::delay_seconds>({.names = "--delay",
                                                              .type = seconds(),
                                                              .help = "Delay of the jobs",
                                                              .shows_default = true}),
    option<&BenchOptions::plan, &bench::Plan::priority>({.names = "--priority",
                                                         .type = count(0, UINT32_MAX),
                                                         .help = "Priority of the jobs",
                                                         .shows_default = true}),
    option<&BenchOptions::plan, &bench::Plan::ttr_seconds>({.names = "--ttr",
                                                            .type = seconds(),
                                                            .help = "Time to run of the jobs",
                                                            .shows_default = true}),
    option<&BenchOptions::seconds>(
        {.names = "--seconds",
         .type = time(0.001, kLongestRun),
         .help = "Measure for this time (reserve: until all jobs are gone)",
         .shows_default = true,
         .default_text = "3"}),
    option<&BenchOptions::jobs>(
        {.names = "--jobs",
         .type = count(1, 1'000'000'000'000),
         .help =
             "End after this number of jobs, all of them measured; --seconds may end it sooner. "
             "reserve: how many jobs there are [100000]"}),
    option<&BenchOptions::warm_up>(
        {.names = "--warm-up",
         .type = time(0, kLongestRun),
         .help = "Do not measure the first seconds; not with --jobs or reserve",
         .shows_default = true,
         .default_text = "0"}),
    option<&BenchOptions::no_fill>(
        {.names = "--no-fill", .help = "reserve: the jobs are there, put none first"}),
    option<&BenchOptions::producers>({.names = "--producers",
                                      .type = count(1, kMaxClients),
                                      .help = "pipe: clients that put [half of --clients]"}),
    option<&BenchOptions::consumers>({.names = "--consumers",
                                      .type = count(1, kMaxClients),
                                      .help = "pipe: clients that reserve [half of --clients]"}),
    option<&BenchOptions::rate>(
        {.names = "--rate",
         .type = number(0, 1e8),
         .help = "pipe: puts a second, of all producers; 0 is as fast as --in-flight allows",
         .shows_default = true,
         .default_text = "0"}),
    json_option<&BenchOptions::json>(),
    option<&BenchOptions::latencies>(
        {.names = "--latencies",
         .type = kFile,
         .help = "Write each measured latency to this file, as 4 bytes of nanoseconds"}),
    option<&BenchOptions::quiet>({.names = "--quiet", .help = "No progress on the terminal"}),
};
static_assert(kSeconds == 3 && kReserveJobs == 100'000);  // as the help says

}  // namespace

const Subcommand& bench_command() {
  static constexpr Subcommand kCommand = runs<BenchOptions, run_bench>(
      {.name = "bench",
       .group = kManyGroup,
       .summary = "Load a server, and measure throughput and latencies",
       .options = kBenchOptions,
       .footer = kBenchFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
