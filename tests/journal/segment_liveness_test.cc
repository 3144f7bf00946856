// Live records and their segments.
#include "journal/segment_liveness.h"

#include <doctest/doctest.h>

using namespace tubed;
using namespace tubed::journal;

namespace {

using Effect = SegmentLiveness::Effect;

Added with_id(JobId id) {
  Added added;
  added.id = id;
  return added;
}

Paused pause(std::uint32_t seconds) {
  return {.tube = "a", .duration = Seconds{seconds}, .until = Time()};
}

}  // namespace

TEST_CASE("the newest record of a job is live") {
  SegmentLiveness liveness;
  liveness.open_segment(1, 64);
  CHECK(liveness.apply(with_id(10), 100) == Effect::once);
  CHECK(liveness.apply(with_id(11), 100) == Effect::once);
  CHECK(liveness.segment_of(10) == 1);
  liveness.open_segment(2, 64);
  CHECK(liveness.apply(with_id(10), 120) == Effect::again);  // copied
  CHECK(liveness.jobs() == 2);
  CHECK(liveness.segment_of(10) == 2);
  CHECK(liveness.oldest().live_records == 1);
  CHECK(liveness.oldest().live_bytes == 100);
  CHECK(liveness.newest().live_bytes == 120);
  CHECK(liveness.live_bytes() == 220);
}

TEST_CASE("a removed job has no live record") {
  SegmentLiveness liveness;
  liveness.open_segment(1, 64);
  liveness.apply(with_id(10), 100);
  liveness.apply(Removed{.id = 10}, 24);
  liveness.apply(Removed{.id = 10}, 24);
  liveness.apply(Removed{.id = 99}, 24);
  CHECK(liveness.segment_of(10) == 0);
  CHECK(liveness.jobs() == 0);
  CHECK(liveness.oldest().live_records == 0);
  CHECK(liveness.live_bytes() == 0);
}

TEST_CASE("consecutive ids are one run") {
  SegmentLiveness liveness;
  liveness.open_segment(1, 64);
  for (JobId id = 5; id < 105; ++id) liveness.apply(with_id(id), 10);
  liveness.apply(with_id(200), 10);
  REQUIRE(liveness.oldest().added.size() == 2);
  CHECK(liveness.oldest().added[0].first == 5);
  CHECK(liveness.oldest().added[0].count == 100);
  CHECK(liveness.oldest().added[1].first == 200);
}

TEST_CASE("a pause in force is live until it ends or is recorded again") {
  SegmentLiveness liveness;
  liveness.open_segment(1, 64);
  liveness.apply(pause(5), 40);
  CHECK(liveness.oldest().live_records == 1);
  liveness.open_segment(2, 64);
  liveness.apply(pause(9), 40);
  CHECK(liveness.oldest().live_records == 0);
  CHECK(liveness.pauses().at("a").duration.count == 9);
  liveness.apply(pause(0), 40);
  CHECK(liveness.live_bytes() == 0);
  CHECK(liveness.pauses().empty());
}

TEST_CASE("the newest position is live, and a reservation never is") {
  SegmentLiveness liveness;
  liveness.open_segment(1, 64);
  CHECK_FALSE(liveness.applied());
  liveness.apply(Applied{.index = 5, .term = 1}, 40);
  liveness.apply(Held{.id = 1, .until = Time()}, 32);
  CHECK(liveness.oldest().live_bytes == 40);
  liveness.open_segment(2, 64);
  liveness.apply(Applied{.index = 6, .term = 1}, 40);
  CHECK(liveness.oldest().live_records == 0);
  CHECK(liveness.live_bytes() == 40);
  REQUIRE(liveness.applied());
  CHECK(liveness.applied()->position.index == 6);
  CHECK(liveness.applied()->segment == 2);
}

TEST_CASE("the oldest segment is dropped with its bytes") {
  SegmentLiveness liveness;
  liveness.open_segment(7, 64);
  liveness.use(36);
  liveness.open_segment(8, 64);
  CHECK(liveness.used_bytes() == 164);
  CHECK(liveness.use_of(7).used_bytes == 100);
  liveness.drop_oldest();
  CHECK(liveness.used_bytes() == 64);
  CHECK(liveness.oldest().sequence == 8);
}
