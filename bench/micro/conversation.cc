// A connection without its socket: bytes in, replies out, through parser, queue and reply writer.
#include "commands/conversation.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>

#include "commands/service.h"

namespace {

using namespace tubed;
using commands::Conversation;
using commands::Service;

constexpr int kPipelined = 16;
constexpr std::string_view kReserve = "reserve\r\n";
constexpr std::string_view kDeleted = "DELETED\r\n";

std::string put_command(std::size_t body_bytes) {
  return "put 10 0 3600 " + std::to_string(body_bytes) + "\r\n" + std::string(body_bytes, 'x') +
         "\r\n";
}

std::string repeated(std::string_view command) {
  std::string all;
  for (int i = 0; i < kPipelined; ++i) all += command;
  return all;
}

// The only client of a queue.
class Talk {
 public:
  // Gives it these bytes in one tick and takes the replies; returns their length.
  std::size_t say(std::string_view bytes) {
    now_ += std::chrono::microseconds(10);
    service_.begin_tick(now_);
    conversation_.receive(bytes);
    const std::size_t replied = conversation_.replies().size();
    conversation_.replies().take(replied);
    return replied;
  }
  std::uint64_t ready() const { return service_.engine().info().jobs.ready; }
  // Prepares the deletes of the next 16 jobs, in the order in which they were put.
  void write_deletes() {
    deletes_.clear();
    for (const JobId end = next_ + kPipelined; next_ < end; ++next_) {
      deletes_.append("delete ").append(std::to_string(next_)).append("\r\n");
    }
  }
  // Deletes them. False: some of them do not exist.
  bool say_deletes() { return say(deletes_) == kPipelined * kDeleted.size(); }

 private:
  Time now_{std::chrono::hours(1)};
  Service service_{Limits{}, {}, {.cpu_times = [] { return stats::CpuTimes{}; }}};
  Conversation conversation_{service_};
  JobId next_ = 1;  // jobs to delete
  std::string deletes_;
};

void expect(benchmark::State& state, bool right) {
  if (!right) state.SkipWithError("the client got another reply");
  state.SetItemsProcessed(state.iterations() * kPipelined);
}

// Measures only the commands in the name; the other commands keep the queue unchanged.
void conversation_puts(benchmark::State& state) {
  Talk talk;
  const std::string puts = repeated(put_command(static_cast<std::size_t>(state.range(0))));
  bool right = true;
  for (auto _ : state) {
    talk.say(puts);
    state.PauseTiming();
    talk.write_deletes();
    right &= talk.say_deletes();
    state.ResumeTiming();
  }
  expect(state, right);
}

void conversation_deletes(benchmark::State& state) {
  Talk talk;
  const std::string puts = repeated(put_command(100));
  bool right = true;
  for (auto _ : state) {
    state.PauseTiming();
    talk.say(puts);
    talk.write_deletes();
    state.ResumeTiming();
    right &= talk.say_deletes();
  }
  expect(state, right);
}

void conversation_reserves(benchmark::State& state) {
  Talk talk;
  const std::string puts = repeated(put_command(100));
  const std::string reserves = repeated(kReserve);
  bool right = true;
  for (auto _ : state) {
    state.PauseTiming();
    talk.say(puts);
    state.ResumeTiming();
    talk.say(reserves);
    state.PauseTiming();
    right &= talk.ready() == 0;
    talk.write_deletes();
    right &= talk.say_deletes();
    state.ResumeTiming();
  }
  expect(state, right);
}

// All three commands, without stopping the clock.
void conversation_cycle(benchmark::State& state) {
  Talk talk;
  const std::string puts_and_reserves = repeated(put_command(100)) + repeated(kReserve);
  bool right = true;
  for (auto _ : state) {
    talk.say(puts_and_reserves);
    talk.write_deletes();
    right &= talk.say_deletes();
  }
  expect(state, right);
}

// A body that comes byte by byte is the worst case of a client.
void conversation_put_bytewise(benchmark::State& state) {
  Talk talk;
  const std::string put = put_command(100);
  JobId next = 1;
  bool right = true;
  for (auto _ : state) {
    for (const char& byte : put) talk.say({&byte, 1});
    const std::string line = "delete " + std::to_string(next++) + "\r\n";
    right &= talk.say(line) == kDeleted.size();
  }
  if (!right) state.SkipWithError("the client got another reply");
}

BENCHMARK(conversation_puts)->ArgName("bytes")->Arg(100)->Arg(16 * 1024);
BENCHMARK(conversation_deletes);
BENCHMARK(conversation_reserves);
BENCHMARK(conversation_cycle);
BENCHMARK(conversation_put_bytewise);

}  // namespace
