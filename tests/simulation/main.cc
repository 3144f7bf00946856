// simulation [SEED [COUNT]] [--milliseconds=N] [--clients=N] [--ledgers=N] [--models=N] [--memory]
// [--operated] [--roles] [--http] [--story] [--digests]: runs lives of the server on virtual time,
// and prints the first that has a problem.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <vector>

#include "tests/simulation/commands.h"
#include "tests/simulation/life.h"

using namespace tubed::simulation;

int main(int argc, char** argv) {
  LifeOptions options;
  bool prints_digests = false;
  std::vector<std::uint64_t> numbers;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view value = word.substr(std::min(word.size(), word.find('=') + 1));
    if (word.starts_with("--milliseconds=")) {
      options.duration = std::chrono::milliseconds(number_in(value));
    } else if (word.starts_with("--clients=")) {
      options.clients = static_cast<unsigned>(number_in(value));
    } else if (word.starts_with("--ledgers=")) {
      options.ledgers = static_cast<unsigned>(number_in(value));
    } else if (word.starts_with("--models=")) {
      options.models = static_cast<unsigned>(number_in(value));
    } else if (word == "--memory") {
      options.has_journal = false;
    } else if (word == "--operated") {
      options.operated = true;
    } else if (word == "--roles") {
      options.has_roles = true;
    } else if (word == "--http") {
      options.has_http = true;
    } else if (word == "--story") {
      options.prints_story = true;
    } else if (word == "--digests") {
      prints_digests = true;
    } else if (!word.starts_with("-")) {
      numbers.push_back(number_in(word));
    } else {
      std::fprintf(stderr, "simulation: unknown option %s\n", argv[i]);
      return 2;
    }
  }
  const std::uint64_t first = numbers.empty() ? 1 : numbers[0];
  const std::uint64_t count = numbers.size() < 2 ? 1 : numbers[1];
  std::uint64_t events = 0;
  std::uint64_t processes = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const LifeReport report = live(seed, options);
    events += report.events;
    processes += report.processes;
    if (prints_digests) {
      std::printf("seed %llu: digest %016llx, %llu events\n", static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(report.digest),
                  static_cast<unsigned long long>(report.events));
    }
    if (report.problem.empty()) continue;
    std::printf("%sseed %llu, event %llu: %s\n", report.story.c_str(),
                static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(report.events), report.problem.c_str());
    return 1;
  }
  const double seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  std::printf(
      "%llu lives, %llu processes, %llu events; %.0f events in a second of processor time\n",
      static_cast<unsigned long long>(count), static_cast<unsigned long long>(processes),
      static_cast<unsigned long long>(events), static_cast<double>(events) / seconds);
  return 0;
}
