// Facts as bytes: the journal's work on the loop's thread for each fact.
#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

#include "base/crc32c.h"
#include "journal/batch.h"
#include "journal/format.h"
#include "journal/record.h"

namespace {

using namespace tubed;

constexpr std::uint32_t kSeed = 1;
constexpr Time kNow{std::chrono::hours(1)};
constexpr std::size_t kLargeBodyBytes = 16 * 1024;

Added added_with(std::size_t body_bytes) {
  Added added;
  added.id = 1'000'000;
  added.tube = "default";
  added.ttr = {60};
  added.created = kNow;
  added.body = Bytes::copy_of(std::string(body_bytes, 'x'));
  added.place.priority = 10;
  return added;
}

// Encodes record after record into memory that is already allocated.
void encode(benchmark::State& state, const Fact& fact) {
  std::string out;
  for (auto _ : state) {
    out.clear();
    journal::append_record(out, kSeed, fact, {});
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(journal::record_bytes(fact)));
}

// The batch of a tick with 16 puts, as it is written to the disk.
void batch_of_16_added(benchmark::State& state) {
  const Fact fact = added_with(static_cast<std::size_t>(state.range(0)));
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    journal::Batch batch(kSeed);
    for (int i = 0; i < 16; ++i) batch.add(fact, {});
    batch.finish({.facts = 16});
    benchmark::DoNotOptimize(batch.pieces());
    bytes += batch.bytes();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

void parse_added(benchmark::State& state) {
  std::string record;
  journal::append_record(record, kSeed, added_with(100), {});
  bool right = true;
  for (auto _ : state) {
    right &= journal::parse_record<journal::kLastVersion>(record, kSeed, {}).kind ==
             journal::Parsed::Kind::record;
  }
  if (!right) state.SkipWithError("the record is not a record");
}

void checksum(benchmark::State& state, std::uint32_t (*crc)(std::uint32_t, std::string_view)) {
  const std::string bytes(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) benchmark::DoNotOptimize(crc(0, bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void record_and_body_sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("bytes")->Arg(24)->Arg(256)->Arg(kLargeBodyBytes);
}

BENCHMARK_CAPTURE(encode, added_100_bytes, added_with(100));
BENCHMARK_CAPTURE(encode, added_16_KiB, added_with(kLargeBodyBytes));
BENCHMARK_CAPTURE(encode, placed, Placed{.id = 1'000'000, .place = {}, .counters = {}});
BENCHMARK_CAPTURE(encode, removed, Removed{.id = 1'000'000});
BENCHMARK(batch_of_16_added)->ArgName("bytes")->Arg(100)->Arg(kLargeBodyBytes);
BENCHMARK(parse_added);
BENCHMARK_CAPTURE(checksum, crc32c, &crc32c)->Apply(record_and_body_sizes);
BENCHMARK_CAPTURE(checksum, crc32c_portable, &crc32c_portable)->Apply(record_and_body_sizes);

}  // namespace
