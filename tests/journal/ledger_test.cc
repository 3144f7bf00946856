// Which segments are needed.
#include "journal/ledger.h"

#include <doctest/doctest.h>

using namespace tubed;
using namespace tubed::journal;

namespace {

using Applied = Ledger::Applied;

Added job(JobId id) {
  Added added;
  added.id = id;
  return added;
}

Paused pause(std::uint32_t seconds) {
  return {.tube = "a", .duration = Seconds{seconds}, .until = Time()};
}

}  // namespace

TEST_CASE("a job's home is the segment of its newest record") {
  Ledger ledger;
  ledger.open_segment(1, 64);
  CHECK(ledger.apply(job(10), 100) == Applied::once);
  CHECK(ledger.apply(job(11), 100) == Applied::once);
  CHECK(ledger.home_of(10) == 1);
  ledger.open_segment(2, 64);
  CHECK(ledger.apply(job(10), 120) == Applied::again);  // copied
  CHECK(ledger.jobs() == 2);
  CHECK(ledger.home_of(10) == 2);
  CHECK(ledger.oldest().live_records == 1);
  CHECK(ledger.oldest().live_bytes == 100);
  CHECK(ledger.newest().live_bytes == 120);
  CHECK(ledger.live_bytes() == 220);
}

TEST_CASE("a removed job is nobody's") {
  Ledger ledger;
  ledger.open_segment(1, 64);
  ledger.apply(job(10), 100);
  ledger.apply(Removed{.id = 10}, 24);
  ledger.apply(Removed{.id = 10}, 24);
  ledger.apply(Removed{.id = 99}, 24);
  CHECK(ledger.home_of(10) == 0);
  CHECK(ledger.jobs() == 0);
  CHECK(ledger.oldest().live_records == 0);
  CHECK(ledger.live_bytes() == 0);
}

TEST_CASE("consecutive ids are one run") {
  Ledger ledger;
  ledger.open_segment(1, 64);
  for (JobId id = 5; id < 105; ++id) ledger.apply(job(id), 10);
  ledger.apply(job(200), 10);
  REQUIRE(ledger.oldest().added.size() == 2);
  CHECK(ledger.oldest().added[0].first == 5);
  CHECK(ledger.oldest().added[0].count == 100);
  CHECK(ledger.oldest().added[1].first == 200);
}

TEST_CASE("a pause in force is alive until it ends or is recorded anew") {
  Ledger ledger;
  ledger.open_segment(1, 64);
  ledger.apply(pause(5), 40);
  CHECK(ledger.oldest().live_records == 1);
  ledger.open_segment(2, 64);
  ledger.apply(pause(9), 40);
  CHECK(ledger.oldest().live_records == 0);
  CHECK(ledger.pauses().at("a").duration.count == 9);
  ledger.apply(pause(0), 40);
  CHECK(ledger.live_bytes() == 0);
  CHECK(ledger.pauses().empty());
}

TEST_CASE("the oldest segment goes with its bytes") {
  Ledger ledger;
  ledger.open_segment(7, 64);
  ledger.use(36);
  ledger.open_segment(8, 64);
  CHECK(ledger.used_bytes() == 164);
  CHECK(ledger.use_of(7).used_bytes == 100);
  ledger.drop_oldest();
  CHECK(ledger.used_bytes() == 64);
  CHECK(ledger.oldest().sequence == 8);
}
