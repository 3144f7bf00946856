// tubed_bench puts|bare …: one run of load, or of bare writes; what it measured goes to stdout as
// one line of JSON. bench/durable_puts puts such runs together.
#include <cstdio>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bench/bare.h"
#include "bench/load.h"

namespace {

using namespace tubed;
using namespace tubed::bench;

Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
}

// As the machine has them, four bytes each.
Result<void> keep(const Latencies& latencies, const std::string& name) {
  std::FILE* const file = std::fopen(name.c_str(), "wb");
  if (file == nullptr) return Error{fmt::format("cannot open {}", name)};
  const std::size_t written =
      std::fwrite(latencies.data(), sizeof latencies[0], latencies.size(), file);
  if (std::fclose(file) != 0 || written != latencies.size()) {
    return Error{fmt::format("cannot write {}", name)};
  }
  return {};
}

int report(const Result<Figures>& figures, const std::string& latencies) {
  Result<void> result;
  if (!figures) {
    result = figures.error();
  } else if (!latencies.empty()) {
    result = keep(figures.value().latencies, latencies);
  }
  if (!result) {
    fmt::print(stderr, "tubed_bench: {}\n", result.error().message);
    return 1;
  }
  fmt::print("{{\"all\": {}, \"measured\": {}, \"seconds\": {:.6f}}}\n", figures.value().all,
             figures.value().measured, std::chrono::duration<double>(figures.value().time).count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Puts jobs into a server that speaks beanstalk, or does bare synced writes.");
  app.require_subcommand(1);
  double time = 3;
  double warm_up = 0;
  std::string latencies;

  LoadPlan load;
  CLI::App* const puts = app.add_subcommand("puts", "Put jobs; each is answered INSERTED.");
  puts->add_option("--host", load.host, "IPv4 address of the server")->capture_default_str();
  puts->add_option("--port", load.port, "its port")->required();
  puts->add_option("--clients", load.clients)->check(CLI::Range(1U, 100'000U));
  puts->add_option("--in-flight", load.in_flight, "puts of a client that wait for their answer")
      ->check(CLI::Range(1U, 1'000'000U));
  puts->add_option("--body", load.body_bytes, "bytes of a job")->capture_default_str();
  puts->add_option("--puts", load.puts, "put so many jobs, however long it takes");
  puts->add_option("--warm-up", warm_up, "seconds that do not count");

  BarePlan plan;
  const std::map<std::string, Space> spaces{
      {"growing", Space::growing}, {"reserved", Space::reserved}, {"written", Space::written}};
  CLI::App* const bare = app.add_subcommand("bare", "write + fdatasync, again and again.");
  bare->add_option("--file", plan.file, "a new file, removed at the end")->required();
  bare->add_option("--bytes", plan.bytes, "of one write")
      ->required()
      ->check(CLI::Range(1U, 1024U * 1024U));
  bare->add_option("--space", plan.space, "what the file has where it is written to")
      ->transform(CLI::CheckedTransformer(spaces));

  for (CLI::App* const command : {puts, bare}) {
    command->add_option("--seconds", time, "for how long")->capture_default_str();
    command->add_option("--latencies", latencies, "file for each one's nanoseconds, 4 bytes each");
  }
  CLI11_PARSE(app, argc, argv);

  if (bare->parsed()) {
    plan.time = seconds(time);
    return report(run_bare(plan), latencies);
  }
  load.time = seconds(time);
  load.warm_up = load.puts > 0 ? Clock::duration::zero() : seconds(warm_up);
  load.latencies = !latencies.empty();
  return report(run_load(load), latencies);
}
