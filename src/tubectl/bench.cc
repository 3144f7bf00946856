// tubectl bench: load, and what the server made of it.
#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "tubectl/bench/cycles.h"
#include "tubectl/bench/load.h"
#include "tubectl/bench/pipe.h"
#include "tubectl/bench/report.h"
#include "tubectl/exit_codes.h"
#include "tubectl/subcommand.h"
#include "tubectl/values.h"

namespace tubed::tubectl {
namespace {

using bench::Clock;
using bench::Work;

constexpr std::uint64_t kReserveJobs = 100'000;
constexpr double kSeconds = 3;

constexpr std::string_view kBenchFooter = R"(workloads:
  put      put jobs, which stay in the queue
  reserve  reserve and delete jobs that were put before, until all are gone
  cycle    put, reserve and delete in turn; with K in flight, K/3 jobs a batch
  pipe     producers put, consumers wait for jobs and delete them; the latency is
           from before the put until the consumer has the job

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

// The command line, before it is a plan.
struct Options {
  bench::Plan plan;
  std::string work;
  Server server;
  std::size_t producers = 0;
  std::size_t consumers = 0;
  double seconds = kSeconds;
  double warm_up = 0;
  bool no_fill = false;
  bool json = false;
  bool quiet = false;
  std::string latencies;
  const CLI::App* app = nullptr;

  bool given(const std::string& name) const { return app->count(name) > 0; }
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

// What only some of the workloads know.
Result<void> check_workload(const Options& options) {
  struct Own {
    const char* flag;
    Work work;
  };
  constexpr std::array<Own, 4> kOwn{{{"--no-fill", Work::reserve},
                                     {"--producers", Work::pipe},
                                     {"--consumers", Work::pipe},
                                     {"--rate", Work::pipe}}};
  for (const Own& own : kOwn) {
    if (options.given(own.flag) && options.plan.work != own.work) {
      return Error{fmt::format("{} is only for {}", own.flag, bench::name_of(own.work))};
    }
  }
  const bench::Plan& plan = options.plan;
  if (options.given("--warm-up") && (options.given("--jobs") || plan.work == Work::reserve)) {
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

// Half of the clients each, unless it is said how many.
Result<void> share_out_clients(Options& options) {
  bench::Plan& plan = options.plan;
  if (plan.work != Work::pipe) return {};
  const std::size_t half = std::max<std::size_t>(1, plan.clients / 2);
  plan.producers = options.given("--producers") ? options.producers : half;
  const std::size_t consumers = options.given("--consumers") ? options.consumers : half;
  plan.clients = plan.producers + consumers;
  if (std::min(plan.producers, plan.tubes) > consumers) {
    return Error{"there is a tube with a producer and without a consumer: have more --consumers"};
  }
  return {};
}

Result<bench::Plan> make_plan(Options& options) {
  bench::Plan& plan = options.plan;
  auto work = TRY(work_of(options.work));
  plan.work = work;
  plan.server = TRY(client::parse_address(options.server.text));
  TRY(check_workload(options));
  TRY(share_out_clients(options));
  if (plan.work == Work::reserve && plan.jobs == 0) plan.jobs = kReserveJobs;
  if (plan.jobs == 0 || options.given("--seconds")) plan.time = duration_of(options.seconds);
  if (plan.jobs == 0) plan.warm_up = duration_of(options.warm_up);
  plan.fill = !options.no_fill;
  plan.each_latency = !options.latencies.empty();
  plan.progress = !options.quiet && ::isatty(STDERR_FILENO) == 1;
  return plan;
}

int run_bench(Options& options) {
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

void add_load_options(CLI::App& app, Options& options) {
  bench::Plan& plan = options.plan;
  constexpr std::size_t kMany = 100'000;
  app.add_option("--clients", plan.clients, "Connections")
      ->type_name("N")
      ->transform(is_count(1, kMany))
      ->capture_default_str();
  app.add_option("--in-flight", plan.in_flight,
                 "Commands that a client has sent and that are not answered; of pipe: puts")
      ->type_name("N")
      ->transform(is_count(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--body", plan.body_bytes, "Size of a job")
      ->type_name("SIZE")
      ->transform(is_size(0, kMaxJobBytesCeiling))
      ->capture_default_str();
  app.add_option("--tubes", plan.tubes,
                 "Spread the clients over the tubes bench-0, bench-1, ...; 1 is the tube default")
      ->type_name("N")
      ->transform(is_count(1, kMany))
      ->capture_default_str();
  app.add_option("--delay", plan.delay_seconds, "Delay of the jobs")
      ->type_name("TIME")
      ->transform(is_seconds())
      ->capture_default_str();
  app.add_option("--priority", plan.priority, "Priority of the jobs")
      ->type_name("N")
      ->transform(is_count(0, UINT32_MAX))
      ->capture_default_str();
  app.add_option("--ttr", plan.ttr_seconds, "Time to run of the jobs")
      ->type_name("TIME")
      ->transform(is_seconds())
      ->capture_default_str();
}

void add_length_options(CLI::App& app, Options& options) {
  constexpr double kLongest = 1e7;
  app.add_option("--seconds", options.seconds,
                 "Measure for so long (reserve: until all jobs are gone)")
      ->type_name("TIME")
      ->transform(is_time(0.001, kLongest))
      ->capture_default_str();
  app.add_option("--jobs", options.plan.jobs,
                 "End after so many jobs, all of them measured; --seconds may end it sooner. "
                 "reserve: how many jobs there are [100000]")
      ->type_name("N")
      ->transform(is_count(1, 1'000'000'000'000));
  app.add_option("--warm-up", options.warm_up,
                 "Do not measure the first seconds; not with --jobs or reserve")
      ->type_name("TIME")
      ->transform(is_time(0, kLongest))
      ->capture_default_str();
}

void add_workload_options(CLI::App& app, Options& options) {
  constexpr std::size_t kMany = 100'000;
  app.add_flag("--no-fill", options.no_fill, "reserve: the jobs are there, put none first");
  app.add_option("--producers", options.producers, "pipe: clients that put [half of --clients]")
      ->type_name("N")
      ->transform(is_count(1, kMany));
  app.add_option("--consumers", options.consumers, "pipe: clients that reserve [half of --clients]")
      ->type_name("N")
      ->transform(is_count(1, kMany));
  app.add_option("--rate", options.plan.rate,
                 "pipe: puts a second, of all producers; 0 is as fast as --in-flight allows")
      ->type_name("N")
      ->transform(is_number(0, 1e8))
      ->capture_default_str();
}

void add_output_options(CLI::App& app, Options& options) {
  add_json_flag(app, options.json);
  app.add_option("--latencies", options.latencies,
                 "Write each measured latency to this file, as 4 bytes of nanoseconds")
      ->type_name("FILE");
  app.add_flag("--quiet", options.quiet, "No progress on the terminal");
}

}  // namespace

Subcommand add_bench(CLI::App& parent) {
  const auto options = std::make_shared<Options>();
  CLI::App& app =
      *parent.add_subcommand("bench", "Load a server, and measure throughput and latencies");
  options->app = &app;
  app.add_option("WORKLOAD", options->work, "What it does; see below")
      ->type_name("WORKLOAD")
      ->check(CLI::IsMember({"put", "reserve", "cycle", "pipe"}))
      ->required();
  add_server_option(app, options->server);
  add_load_options(app, *options);
  add_length_options(app, *options);
  add_workload_options(app, *options);
  add_output_options(app, *options);
  app.footer(std::string(kBenchFooter));
  return Subcommand{&app, [options] { return run_bench(*options); }};
}

}  // namespace tubed::tubectl
