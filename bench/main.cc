// bench_bare …: bare synced writes; prints the measurements as one line of JSON. bench/durable_puts
// compares them with the servers.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "bench/bare.h"
#include "bench/command_line.h"

namespace {

using namespace tubed;
using namespace tubed::bench;

// In the order of Space.
constexpr std::array<std::string_view, 3> kSpaces{"growing", "reserved", "written"};

struct Options {
  BarePlan plan;
  std::string space = "growing";
  double seconds = 3;
  std::string latencies;
};

constexpr std::array kRows{
    options::kHelpOption,
    options::option<&Options::plan, &BarePlan::file>({.names = "--file",
                                                      .type = options::kFile,
                                                      .help = "a new file, removed at the end",
                                                      .required = true}),
    options::option<&Options::plan, &BarePlan::bytes>({.names = "--bytes",
                                                       .type = options::count(1, 1024 * 1024),
                                                       .help = "of one write",
                                                       .required = true}),
    options::option<&Options::space>({.names = "--space",
                                      .type = options::choice("SPACE", kSpaces),
                                      .help = "the kind of space that is written to",
                                      .shows_default = true}),
    options::option<&Options::seconds>({.names = "--seconds",
                                        .type = options::time(0, 1e6),
                                        .help = "for how long",
                                        .shows_default = true}),
    options::option<&Options::latencies>({.names = "--latencies",
                                          .type = options::kFile,
                                          .help = "file for each one's nanoseconds, 4 bytes each"}),
};

int fail(const Error& error) {
  fmt::print(stderr, "bench_bare: {}\n", error.message);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options given;
  const auto exit_code = take_command_line("bench_bare", "write + fdatasync, again and again.",
                                           kRows, argc, argv, &given);
  if (exit_code) return *exit_code;

  BarePlan& plan = given.plan;
  plan.space =
      static_cast<Space>(std::ranges::find(kSpaces, given.space) - std::ranges::begin(kSpaces));
  plan.time =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(given.seconds));
  plan.each_latency = !given.latencies.empty();
  const auto figures = run_bare(plan);
  if (!figures) return fail(figures.error());
  if (!given.latencies.empty()) {
    const auto written = figures.value().latencies.write(given.latencies);
    if (!written) return fail(written.error());
  }
  fmt::print("{{\"all\": {}, \"measured\": {}, \"seconds\": {:.6f}}}\n", figures.value().all,
             figures.value().measured, figures.value().seconds());
  return 0;
}
