// simulation [SEED [COUNT]] [OPTION…] [--story] [--digests] [--shorten]: runs lives of the server
// on virtual time, and prints the first with a problem. options.cc has the options of a life.
// --shorten runs the lives in child processes and shortens the first with a problem.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <vector>

#include "tests/simulation/commands.h"
#include "tests/simulation/life.h"
#include "tests/simulation/options.h"
#include "tests/simulation/shorten.h"
#include "text/numbers.h"

using namespace tubed::simulation;

namespace {

constexpr unsigned kMostLives = 1000;  // to shorten one

unsigned long long number(std::uint64_t value) {
  return value;
}

// Returns true if the life has a problem.
bool shorten_and_print(std::uint64_t seed, const LifeOptions& options) {
  const Shortened shortened = shorten(seed, options, kMostLives);
  if (shortened.before.problem.empty()) return false;
  std::printf("seed %llu, event %llu: %s\n", number(seed), number(shortened.before.events),
              shortened.before.problem.c_str());
  std::printf("after %u lives, event %llu: %s\nsimulation %llu%s\n", shortened.lives,
              number(shortened.after.events), shortened.after.problem.c_str(), number(seed),
              words_of(shortened.options).c_str());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  LifeOptions options;
  bool prints_digests = false;
  bool shortens = false;
  std::vector<std::uint64_t> numbers;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--story") {
      options.prints_story = true;
    } else if (word == "--digests") {
      prints_digests = true;
    } else if (word == "--shorten") {
      shortens = true;
    } else if (!word.starts_with("-")) {
      numbers.push_back(tubed::leading_number(word));
    } else if (!take_option(word, options)) {
      std::fprintf(stderr, "simulation: unknown option %s\n", argv[i]);
      return 2;
    }
  }
  const std::uint64_t first = numbers.empty() ? 1 : numbers[0];
  const std::uint64_t count = numbers.size() < 2 ? 1 : numbers[1];
  std::uint64_t events = 0;
  std::uint64_t processes = 0;
  std::uint64_t most_walked = 0;
  std::uint64_t most_ticks = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    if (shortens) {
      if (shorten_and_print(seed, options)) return 1;
      continue;
    }
    const LifeReport report = live(seed, options);
    events += report.events;
    processes += report.processes;
    most_walked = std::max(most_walked, report.most_walked);
    most_ticks = std::max(most_ticks, report.most_ticks);
    if (prints_digests) {
      std::printf("seed %llu: digest %016llx, %llu events\n", number(seed), number(report.digest),
                  number(report.events));
    }
    if (report.problem.empty()) continue;
    std::printf("%sseed %llu, event %llu: %s\n", report.story.c_str(), number(seed),
                number(report.events), report.problem.c_str());
    return 1;
  }
  if (shortens) {
    std::printf("%llu lives have no problem\n", number(count));
    return 0;
  }
  const double seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  std::printf(
      "%llu lives, %llu processes, %llu events; %.0f events in a second of processor time\n"
      "at most %llu steps of the engine in a tick, and %llu ticks until an answer\n",
      number(count), number(processes), number(events), static_cast<double>(events) / seconds,
      number(most_walked), number(most_ticks));
  return 0;
}
