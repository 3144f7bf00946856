// The queue itself, without protocol, sockets or journal, empty and with a million ready jobs.
#include "engine/engine.h"

#include <cstdint>

#include <benchmark/benchmark.h>

namespace {

using namespace tubed;
using engine::Engine;

constexpr Time kNow{std::chrono::hours(1)};
constexpr Seconds kTtr{3600};

// Stores its input just long enough to keep the compiler from removing the code.
class LastNotice final : public engine::Output {
 public:
  void fact(const Fact& fact) override { benchmark::DoNotOptimize(&fact); }
  void notice(const engine::Notice& notice) override { job = notice.job; }

  JobId job = 0;
};

// An engine with the number of jobs in the benchmark's argument, and one session.
class FilledEngine {
 public:
  explicit FilledEngine(const benchmark::State& state) {
    for (std::int64_t i = 0; i < state.range(0); ++i) put();
  }

  JobId put() {
    if (!engine.memory().claim(body_.size())) return 0;
    return engine.put(session, kNow, {.priority = 10, .delay = {}, .ttr = kTtr, .body = body_},
                      out);
  }
  JobId reserve() { return engine.reserve(session, kNow, {})->job; }

  LastNotice out;
  Engine engine{Limits{}};
  SessionId session = engine.open();

 private:
  Bytes body_ = Bytes::copy_of("a body of some bytes");
};

// Fails a benchmark that did not do what its name says.
void expect(benchmark::State& state, bool right) {
  if (!right) state.SkipWithError("the queue did not do it");
}

void engine_put_reserve_delete(benchmark::State& state) {
  FilledEngine filled(state);
  bool right = true;
  for (auto _ : state) {
    filled.put();
    right &= filled.engine.remove(filled.session, kNow, filled.reserve(), filled.out);
  }
  expect(state, right);
}

void engine_put_delete(benchmark::State& state) {
  FilledEngine filled(state);
  bool right = true;
  for (auto _ : state)
    right &= filled.engine.remove(filled.session, kNow, filled.put(), filled.out);
  expect(state, right);
}

void engine_reserve_release(benchmark::State& state) {
  FilledEngine filled(state);
  bool right = true;
  for (auto _ : state) {
    right &= filled.engine.release(filled.session, kNow, filled.reserve(), 10, {}, filled.out);
  }
  expect(state, right);
}

void engine_touch(benchmark::State& state) {
  FilledEngine filled(state);
  const JobId held = filled.reserve();
  bool right = true;
  for (auto _ : state) right &= filled.engine.touch(filled.session, kNow, held);
  expect(state, right);
}

// Any job by its id: jobs with adjacent ids are adjacent in memory, others are not.
void engine_peek(benchmark::State& state) {
  FilledEngine filled(state);
  const auto jobs = static_cast<std::uint64_t>(state.range(0));
  std::uint64_t next = 0;
  bool right = true;
  for (auto _ : state) {
    next += 7'919;  // a prime: all jobs are visited
    right &= filled.engine.queries().peek(1 + next % jobs).has_value();
  }
  expect(state, right);
}

void alone_and_beside_many(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("jobs")->Arg(1)->Arg(1'000'000);
}

BENCHMARK(engine_put_reserve_delete)->Apply(alone_and_beside_many);
BENCHMARK(engine_put_delete)->Apply(alone_and_beside_many);
BENCHMARK(engine_reserve_release)->Apply(alone_and_beside_many);
BENCHMARK(engine_touch)->Apply(alone_and_beside_many);
BENCHMARK(engine_peek)->Apply(alone_and_beside_many);

}  // namespace
