// Lives of the server replay, and their results do not depend on the machine.
#include "tests/simulation/life.h"

#include <doctest/doctest.h>

#include "tests/simulation/conditions.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

TEST_CASE("a seed gives the same life twice, and another seed another life") {
  const LifeOptions options{.duration = 300ms};
  const LifeReport first = live(11, options);
  const LifeReport again = live(11, options);
  const LifeReport other = live(12, options);
  CHECK(first.problem.empty());
  CHECK(first.events > 1000);
  CHECK(again.digest == first.digest);
  CHECK(again.events == first.events);
  CHECK(other.digest != first.digest);
}

TEST_CASE("a process has no processor time in a stall") {
  const auto at = [](Duration time) { return Time{time}; };
  Conditions conditions;
  CHECK(conditions.running_for(20ms, at(500ms)) == at(480ms));
  conditions.stalls = {{at(100ms), 50ms}, {at(450ms), 10ms}, {at(490ms), 30ms}};
  CHECK(conditions.running_for(5ms, at(500ms)) == at(495ms));
  CHECK(conditions.running_for(20ms, at(500ms)) == at(450ms));
  CHECK(conditions.running_for(30ms, at(500ms)) == at(430ms));
  CHECK(conditions.running_for(380ms, at(500ms)) == at(30ms));
}

TEST_CASE("the processes of a life end in each way") {
  bool is_killed = false;
  bool is_cut = false;
  bool is_stopped = false;
  for (std::uint64_t seed = 1; seed < 30 && !(is_killed && is_cut && is_stopped); ++seed) {
    const LifeReport report = live(seed, {.duration = 400ms});
    CHECK(report.problem.empty());
    is_killed |= report.kills > 0;
    is_cut |= report.power_cuts > 0;
    is_stopped |= report.stops > 0;
  }
  CHECK(is_killed);
  CHECK(is_cut);
  CHECK(is_stopped);
}

TEST_CASE("some starts after a loss of power have lost acknowledged changes") {
  std::uint64_t losses = 0;
  for (std::uint64_t seed = 1; seed < 60 && losses == 0; ++seed) {
    const LifeReport report = live(seed, {.duration = 400ms});
    CHECK(report.problem.empty());
    losses += report.losses;
  }
  CHECK(losses > 0);
}

TEST_CASE("an operated life replays, and its drains, reloads and stops end correctly") {
  const LifeOptions options{.duration = 400ms, .operated = true};
  CHECK(live(5, options).digest == live(5, options).digest);
  std::uint64_t drains = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t reloads = 0;
  for (std::uint64_t seed = 1; seed < 60 && (drains == 0 || timeouts == 0 || reloads == 0);
       ++seed) {
    const LifeReport report = live(seed, options);
    CHECK(report.problem.empty());
    drains += report.drains;
    timeouts += report.drain_timeouts;
    reloads += report.reloads;
  }
  CHECK(drains > 0);
  CHECK(timeouts > 0);
  CHECK(reloads > 0);
}

TEST_CASE("a life with roles replays") {
  const LifeOptions options{.duration = 400ms, .operated = true, .has_roles = true};
  const LifeReport first = live(3, options);
  CHECK(first.problem.empty());
  CHECK(first.reloads > 0);
  CHECK(live(3, options).digest == first.digest);
}

// Seed 4 has a crowd of waiting requests.
TEST_CASE("a life with HTTP clients replays") {
  for (std::uint64_t seed = 3; seed <= 4; ++seed) {
    const LifeOptions options{.duration = 300ms, .operated = true, .has_http = true};
    const LifeReport first = live(seed, options);
    CHECK(first.problem.empty());
    CHECK(live(seed, options).digest == first.digest);
  }
}

}  // namespace tubed::simulation
