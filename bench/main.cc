// bench_bare …: bare synced writes; prints the measurements as one line of JSON. bench/durable_puts
// compares them with the servers.
#include <cstdio>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bench/bare.h"

namespace {

using namespace tubed;
using namespace tubed::bench;

int fail(const Error& error) {
  fmt::print(stderr, "bench_bare: {}\n", error.message);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("write + fdatasync, again and again.");
  double seconds = 3;
  std::string latencies;
  BarePlan plan;
  const std::map<std::string, Space> spaces{
      {"growing", Space::growing}, {"reserved", Space::reserved}, {"written", Space::written}};
  app.add_option("--file", plan.file, "a new file, removed at the end")->required();
  app.add_option("--bytes", plan.bytes, "of one write")
      ->required()
      ->check(CLI::Range(1U, 1024U * 1024U));
  app.add_option("--space", plan.space, "the kind of space that is written to")
      ->transform(CLI::CheckedTransformer(spaces));
  app.add_option("--seconds", seconds, "for how long")->capture_default_str();
  app.add_option("--latencies", latencies, "file for each one's nanoseconds, 4 bytes each");
  CLI11_PARSE(app, argc, argv);

  plan.time = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  plan.each_latency = !latencies.empty();
  const auto figures = run_bare(plan);
  if (!figures) return fail(figures.error());
  if (!latencies.empty()) {
    const auto written = figures.value().latencies.write(latencies);
    if (!written) return fail(written.error());
  }
  fmt::print("{{\"all\": {}, \"measured\": {}, \"seconds\": {:.6f}}}\n", figures.value().all,
             figures.value().measured, figures.value().seconds());
  return 0;
}
