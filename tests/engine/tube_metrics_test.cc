// TubeMetrics: counts, how long records are retained, and which tubes have one of their own.
#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

namespace {

Limits with_metrics(std::uint32_t tubes, Duration linger = 60s) {
  Limits limits;
  limits.tubes_with_metrics = tubes;
  limits.metrics_retention = linger;
  return limits;
}

Lines named(const World& world) {
  Lines names;
  world.engine.queries().tube_metrics().visit_after("", world.engine.limits(), world.now,
                                                    [&](const TubeMetrics& metrics, bool expired) {
                                                      if (!expired)
                                                        names.emplace_back(metrics.name);
                                                      return true;
                                                    });
  return names;
}

// The record of the tube, or the overflow record.
const TubeMetrics& metrics_of(const World& world, std::string_view name) {
  const TubeMetrics* found = &world.engine.queries().tube_metrics().overflow();
  world.engine.queries().tube_metrics().visit_after("", world.engine.limits(), world.now,
                                                    [&](const TubeMetrics& metrics, bool expired) {
                                                      if (!expired && metrics.name == name)
                                                        found = &metrics;
                                                      return metrics.name < name;
                                                    });
  return *found;
}

std::uint64_t puts_of(const World& world, std::string_view name) {
  return metrics_of(world, name).put_count;
}

// Creates a tube, puts and deletes a job, and removes the tube.
void visit(World& world, std::string_view tube) {
  const SessionId session = world.open(tube);
  world.remove(session, world.put(session));
  world.close(session);
}

}  // namespace

TEST_CASE("a job that a replay brings from later than now has waited for no time") {
  World world(with_metrics(10));
  world.put(world.open("a"));
  World again(with_metrics(10));
  again.now = world.now - 1h;  // the wall clock was set back between the two
  for (const RecordedFact& kept : world.output.log()) again.engine.replay(again.now, kept.fact());
  again.take(again.open("a"));
  CHECK(metrics_of(again, "a").put_to_reserve.sum_seconds() == 0);
  CHECK(metrics_of(again, "a").put_to_reserve.total() == 1);
}

TEST_CASE("the mean time for which jobs are worked on is known after 10 jobs") {
  World world(with_metrics(10));
  const SessionId session = world.open("a");
  for (int job = 0; job < 10; ++job) {
    CHECK(metrics_of(world, "a").mean_processing_seconds() == 1);
    const JobId id = world.put_and_hold(session);
    world.pass(job == 0 ? 3s : 500ms);
    world.remove(session, id);
  }
  CHECK(metrics_of(world, "a").mean_processing_seconds() == doctest::Approx(0.75));
}

TEST_CASE("metrics count the changes of the jobs of a tube") {
  World world(with_metrics(10));
  const SessionId session = world.open("a");
  const JobId first = world.put(session, {.ttr = 2});
  world.pass(5ms);
  CHECK(world.take(session) == first);
  world.pass(2s);  // timed out
  CHECK(metrics_of(world, "a").timeout_count == 1);
  CHECK(world.take(session) == first);
  world.pass(50ms);
  world.remove(session, first);
  world.put(session);
  world.put(session, {.delay = 5});
  world.put_and_bury(session);
  world.put_and_hold(session);
  world.pause("a", 100);
  world.reserve(session);
  const TubeMetrics& metrics = metrics_of(world, "a");
  CHECK(metrics.name == "a");
  CHECK(metrics.put_count == 5);
  CHECK(metrics.delete_count == 1);
  CHECK(metrics.jobs ==
        StateCounts{.urgent = 1, .ready = 1, .reserved = 1, .delayed = 1, .buried = 1});
  CHECK(metrics.waiting_count == 1);
  CHECK(metrics.paused_count == 1);
  // One job was first reserved after 5 ms, the others at once; second reservations do not count.
  CHECK(metrics.put_to_reserve.total() == 3);
  CHECK(metrics.put_to_reserve.sum_seconds() == doctest::Approx(0.005));
  CHECK(metrics.reserve_to_delete.total() == 1);
  CHECK(metrics.reserve_to_delete.sum_seconds() == doctest::Approx(0.05));
  CHECK(world.engine.queries().tube_metrics().overflow().put_count == 0);
}

TEST_CASE("a delete by a session that does not hold the job is no reservation's end") {
  World world(with_metrics(10));
  const SessionId session = world.open("a");
  world.remove(session, world.put(session));
  world.remove(session, world.put_and_bury(session));
  CHECK(metrics_of(world, "a").delete_count == 2);
  CHECK(metrics_of(world, "a").reserve_to_delete.total() == 0);
}

TEST_CASE("a tube that is created again in time continues its counts") {
  World world(with_metrics(10, 60s));
  visit(world, "a");
  CHECK_FALSE(world.has_tube("a"));
  CHECK(puts_of(world, "a") == 1);
  CHECK(metrics_of(world, "a").jobs == StateCounts{});
  world.pass(59s);
  visit(world, "a");
  CHECK(puts_of(world, "a") == 2);
  CHECK(named(world) == Lines{"a", "default"});
  world.pass(60s);
  CHECK(named(world) == Lines{"default"});
  visit(world, "a");
  CHECK(puts_of(world, "a") == 1);
}

TEST_CASE("the first tubes get records of their own, and all others share one") {
  World world(with_metrics(2));
  const SessionId a = world.open("a");
  const SessionId b = world.open("b");
  const SessionId c = world.open("c");
  for (const SessionId session : {a, b, b, c, c, c}) world.put(session);
  CHECK(named(world) == Lines{"a", "default"});
  CHECK(puts_of(world, "a") == 1);
  const TubeMetrics& other = world.engine.queries().tube_metrics().overflow();
  CHECK(other.name == "other");
  CHECK(other.put_count == 5);
  CHECK(other.jobs.ready == 5);
}

TEST_CASE("the record of a tube is chosen when it is created, and stays") {
  World world(with_metrics(2, 60s));
  const SessionId a = world.open("a");
  const SessionId b = world.open("b");
  world.remove(a, world.put(a));
  world.close(a);
  world.pass(61s);
  world.put(b);  // a place is free, but b is counted with the others
  CHECK(puts_of(world, "b") == 1);
  CHECK(named(world) == Lines{"default"});
  world.open("c");
  CHECK(named(world) == Lines{"c", "default"});
}

TEST_CASE("a record is evicted after its retention, and not before") {
  World world(with_metrics(2, 60s));
  visit(world, "a");
  world.pass(59s);
  visit(world, "b");
  CHECK(named(world) == Lines{"a", "default"});
  world.pass(1s);
  visit(world, "b");
  CHECK(named(world) == Lines{"b", "default"});
  CHECK(world.engine.queries().tube_metrics().overflow().put_count == 1);
}

TEST_CASE("a reload changes the number of records for tubes created later") {
  World world(with_metrics(1, 60s));
  const SessionId a = world.open("a");
  world.put(a);
  world.engine.set_limits(with_metrics(3, 60s));
  CHECK(named(world) == Lines{"default"});
  const SessionId b = world.open("b");
  const SessionId c = world.open("c");
  world.put(b);
  CHECK(named(world) == Lines{"b", "c", "default"});
  world.engine.set_limits(with_metrics(2, 60s));
  CHECK(named(world) == Lines{"b", "c", "default"});
  world.close(c);  // beyond the bound it does not linger
  CHECK(named(world) == Lines{"b", "default"});
  world.engine.set_limits(with_metrics(0, 60s));
  CHECK(named(world) == Lines{"b", "default"});
  CHECK(puts_of(world, "b") == 1);
}

TEST_CASE("a tube with the name of the overflow record is counted in it") {
  World world(with_metrics(10));
  const SessionId other = world.open("other");
  world.put(other);
  CHECK(named(world) == Lines{"default"});
  CHECK(world.engine.queries().tube_metrics().overflow().put_count == 1);
}

TEST_CASE("the age of the oldest ready job") {
  World world(with_metrics(2));
  const SessionId a = world.open("a");
  const auto age = [&](std::string_view tube) {
    return metrics_of(world, tube).oldest_ready_age(world.now);
  };
  CHECK(age("a") == 0s);
  const JobId first = world.put(a, {.priority = 5});
  world.pass(7ms);
  world.put(a, {.priority = 5});
  world.pass(1500ms);
  world.put(a, {.priority = 0});
  CHECK(age("a") == 1507ms);  // although it is not the next job
  CHECK(world.take(a) == first + 2);
  CHECK(world.take(a) == first);
  CHECK(age("a") == 1500ms);  // exact, since it is the next job
  world.release(a, first, 5);
  CHECK(age("a") == 1507ms);
  world.engine.set_limits(with_metrics(0));
  const SessionId b = world.open("b");
  const SessionId c = world.open("c");
  world.put(b);
  world.pass(2s);
  world.put(c);
  CHECK(world.engine.queries().tube_metrics().overflow().oldest_ready_age(world.now) == 2s);
}

TEST_CASE("many expired records are evicted one after the other") {
  World world(with_metrics(1000, 60s));
  for (int i = 0; i < 500; ++i) visit(world, "t" + std::to_string(i));
  CHECK(named(world).size() == 501);
  world.pass(60s);
  CHECK(named(world) == Lines{"default"});
  visit(world, "t499");  // one of the expired records
  CHECK(puts_of(world, "t499") == 1);
  CHECK(named(world) == Lines{"default", "t499"});
}

}  // namespace tubed::engine
