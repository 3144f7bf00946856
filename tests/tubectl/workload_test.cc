#include <algorithm>
#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tubectl/bench/pipe.h"
#include "tubectl/bench/workloads.h"

namespace tubed::tubectl::bench {
namespace {

using std::chrono::milliseconds;

const Clock::time_point kStart = Clock::time_point(std::chrono::hours(1));

Plan plan_of(Work work, std::size_t clients, std::size_t in_flight, std::uint64_t jobs) {
  Plan plan;
  plan.work = work;
  plan.clients = clients;
  plan.in_flight = in_flight;
  plan.jobs = jobs;
  plan.body_bytes = 16;
  return plan;
}

constexpr std::string_view kPut = "put 0 0 60 16\r\nxxxxxxxxxxxxxxxx\r\n";

client::ReplyView inserted() {
  return {"INSERTED 1", {}};
}
client::ReplyView reserved(JobId id, std::string_view head = {}) {
  static std::string line;
  line = fmt::format("RESERVED {} {}", id, head.size());
  return {line, head};
}
client::ReplyView deleted() {
  return {"DELETED", {}};
}

std::string times(std::size_t count, std::string_view text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

// The stamp in a request with a single put.
Clock::time_point stamp_of(std::string_view request) {
  const std::string text(request.substr(request.find('\n') + 1, 16));
  return Clock::time_point(std::chrono::nanoseconds(std::stoll(text, nullptr, 16)));
}

}  // namespace

TEST_CASE("puts: a fixed number in flight, and no more than the jobs of the plan") {
  const Plan plan = plan_of(Work::put, 2, 3, 5);
  Measurement measurement;
  measurement.measuring = true;
  Puts puts(plan, plan.in_flight, measurement);
  CHECK(puts.next(0, kStart) == times(3, kPut));
  CHECK(puts.next(0, kStart) == "");
  CHECK(puts.next(1, kStart) == times(2, kPut));
  CHECK(puts.overdue() == 5);
  for (int i = 0; i < 3; ++i) REQUIRE(puts.take(0, inserted(), kStart + milliseconds(2)));
  CHECK(puts.next(0, kStart) == "");
  CHECK_FALSE(puts.finished());
  for (int i = 0; i < 2; ++i) REQUIRE(puts.take(1, inserted(), kStart + milliseconds(2)));
  CHECK(puts.finished());
  CHECK(puts.in_tubes() == std::vector<std::uint64_t>{5});
  CHECK(measurement.figures.measured == 5);
  CHECK(measurement.figures.latencies.max() == 2'000'000);
}

TEST_CASE("an unexpected reply ends the run, and the error quotes it") {
  const Plan plan = plan_of(Work::put, 1, 1, 1);
  Measurement measurement;
  Puts puts(plan, 1, measurement);
  puts.next(0, kStart);
  const auto taken = puts.take(0, client::ReplyView{"OUT_OF_MEMORY", {}}, kStart);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().message == "a put was answered \"OUT_OF_MEMORY\"");
  const auto unasked = puts.take(0, deleted(), kStart);
  REQUIRE_FALSE(unasked);
  CHECK(unasked.error().message == "the server said \"DELETED\" unasked");
}

TEST_CASE("reserves: each tube gets no more reserves than it has jobs, and each job is deleted") {
  Plan plan = plan_of(Work::reserve, 2, 2, 3);
  plan.tubes = 2;
  Measurement measurement;
  Reserves reserves(plan, {1, 2}, measurement);
  CHECK(reserves.next(0, kStart) == "reserve\r\n");
  CHECK(reserves.next(1, kStart) == "reserve\r\nreserve\r\n");
  REQUIRE(reserves.take(1, reserved(8), kStart));
  CHECK(reserves.next(1, kStart) == "delete 8\r\n");
  REQUIRE(reserves.take(0, reserved(7), kStart));
  CHECK(reserves.next(0, kStart) == "delete 7\r\n");
  REQUIRE(reserves.take(0, deleted(), kStart));
  REQUIRE(reserves.take(1, reserved(9), kStart));
  CHECK(reserves.next(1, kStart) == "delete 9\r\n");
  REQUIRE(reserves.take(1, deleted(), kStart));
  CHECK_FALSE(reserves.finished());
  REQUIRE(reserves.take(1, deleted(), kStart));
  CHECK(reserves.finished());
  CHECK(measurement.figures.all == 6);
}

TEST_CASE("cycles, one command in flight: put, reserve, delete, even after stop()") {
  const Plan plan = plan_of(Work::cycle, 1, 1, 0);
  Measurement measurement;
  Cycles cycles(plan, measurement);
  CHECK(cycles.next(0, kStart) == kPut);
  CHECK(cycles.next(0, kStart) == "");
  cycles.stop();
  REQUIRE(cycles.take(0, inserted(), kStart));
  CHECK(cycles.next(0, kStart) == "reserve\r\n");
  REQUIRE(cycles.take(0, reserved(4), kStart));
  CHECK(cycles.next(0, kStart) == "delete 4\r\n");
  REQUIRE(cycles.take(0, deleted(), kStart));
  CHECK(cycles.next(0, kStart) == "");
  CHECK(cycles.finished());
}

TEST_CASE("cycles, many in flight: a batch is followed by the deletes of the previous batch") {
  const Plan plan = plan_of(Work::cycle, 1, 8, 3);  // two jobs per batch
  Measurement measurement;
  Cycles cycles(plan, measurement);
  CHECK(cycles.next(0, kStart) == times(2, kPut) + "reserve\r\nreserve\r\n");
  for (int i = 0; i < 2; ++i) REQUIRE(cycles.take(0, inserted(), kStart));
  REQUIRE(cycles.take(0, reserved(1), kStart));
  CHECK(cycles.next(0, kStart) == "");
  REQUIRE(cycles.take(0, reserved(2), kStart));
  CHECK(cycles.next(0, kStart) == times(1, kPut) + "reserve\r\ndelete 1\r\ndelete 2\r\n");
  REQUIRE(cycles.take(0, inserted(), kStart));
  REQUIRE(cycles.take(0, reserved(3), kStart));
  for (int i = 0; i < 2; ++i) REQUIRE(cycles.take(0, deleted(), kStart));
  CHECK(cycles.next(0, kStart) == "delete 3\r\n");
  REQUIRE(cycles.take(0, deleted(), kStart));
  CHECK(cycles.finished());
  CHECK(measurement.figures.all == 9);
}

TEST_CASE("a pipe measures from the put to the consumer, and waits until all jobs are consumed") {
  Plan plan = plan_of(Work::pipe, 2, 1, 1);
  plan.producers = 1;
  Measurement measurement;
  measurement.measuring = true;
  Pipe pipe(plan, kStart, measurement);
  const std::string put(pipe.next(0, kStart + milliseconds(1)));
  CHECK(stamp_of(put) == kStart + milliseconds(1));
  CHECK(pipe.next(1, kStart) == "reserve\r\n");
  CHECK(pipe.next(1, kStart) == "");
  const std::string_view head = std::string_view(put).substr(put.find('\n') + 1, 16);
  REQUIRE(pipe.take(1, reserved(5, head), kStart + milliseconds(4)));
  CHECK(measurement.figures.latencies.max() == 3'000'000);
  CHECK(pipe.next(1, kStart) == "delete 5\r\nreserve\r\n");
  REQUIRE(pipe.take(1, deleted(), kStart));
  CHECK_FALSE(pipe.finished());
  REQUIRE(pipe.take(0, inserted(), kStart));
  CHECK(pipe.finished());
  CHECK(pipe.overdue() == 0);
}

TEST_CASE("a pipe does not mistake jobs of others for its own") {
  Plan plan = plan_of(Work::pipe, 2, 1, 0);
  plan.producers = 1;
  Measurement measurement;
  for (const std::string_view head : {"xxxxxxxxxxxxxxxx", "1", "", "0000000000000001"}) {
    Pipe pipe(plan, kStart, measurement);
    pipe.next(1, kStart);
    CAPTURE(head);
    CHECK_FALSE(pipe.take(1, reserved(5, head), kStart + milliseconds(1)));
  }
}

TEST_CASE("with a rate, puts are due at even intervals, and late puts count from their due time") {
  Plan plan = plan_of(Work::pipe, 2, 1, 0);
  plan.producers = 1;
  plan.rate = 100;  // one per 10 ms
  Measurement measurement;
  Pipe pipe(plan, kStart, measurement);
  CHECK(pipe.due() == kStart);
  CHECK(stamp_of(pipe.next(0, kStart)) == kStart);
  CHECK_FALSE(pipe.due());  // the only producer waits
  REQUIRE(pipe.take(0, inserted(), kStart + milliseconds(3)));
  CHECK(pipe.due() == kStart + milliseconds(10));
  CHECK(pipe.next(0, kStart + milliseconds(9)) == "");
  // Handled late, but no producer was blocked.
  CHECK(stamp_of(pipe.next(0, kStart + milliseconds(11))) == kStart + milliseconds(11));
  REQUIRE(pipe.take(0, inserted(), kStart + milliseconds(25)));
  CHECK(stamp_of(pipe.next(0, kStart + milliseconds(26))) == kStart + milliseconds(20));
}

}  // namespace tubed::tubectl::bench
