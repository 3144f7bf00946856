// The engine against the model: random lives, compared after every step.
//
// TUBED_MODEL_OPERATIONS sets how many operations a run does in all.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <doctest/doctest.h>

#include "tests/engine/twins.h"

namespace tubed::engine {

namespace {

constexpr std::uint64_t kOperationsPerSeed = 4000;
constexpr std::uint64_t kReplayEvery = 100;

std::uint64_t operations_wanted() {
  const char* wanted = std::getenv("TUBED_MODEL_OPERATIONS");
  return wanted == nullptr ? 1'000'000 : std::strtoull(wanted, nullptr, 10);
}

// An assertion of the engine aborts; the story is worth more than its line number.
const Twins* twins_alive = nullptr;

void tell_story_of_abort(int) {
  if (twins_alive != nullptr) std::fprintf(stderr, "%s", twins_alive->story().c_str());
  std::signal(SIGABRT, SIG_DFL);
  std::raise(SIGABRT);
}

void live(std::uint64_t seed, std::uint64_t operations) {
  Twins twins(seed);
  twins_alive = &twins;
  auto* const before = std::signal(SIGABRT, tell_story_of_abort);
  for (std::uint64_t i = 1; i <= operations; ++i) {
    twins.step();
    if (i % kReplayEvery == 0) twins.check_replay();
  }
  std::signal(SIGABRT, before);
  twins_alive = nullptr;
}

}  // namespace

TEST_CASE("the engine does what the model does, whatever happens to it" *
          doctest::test_suite("slow")) {
  const std::uint64_t operations = operations_wanted();
  for (std::uint64_t done = 0, seed = 1; done < operations; done += kOperationsPerSeed, ++seed) {
    live(seed, std::min(kOperationsPerSeed, operations - done));
  }
}

}  // namespace tubed::engine
