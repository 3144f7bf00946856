// The protocol: finding a command, reading its arguments, and writing replies.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>

#include "commands/handlers.h"
#include "commands/table.h"
#include "protocol/arguments.h"
#include "protocol/reply.h"

namespace {

using namespace tubed;

void find_command(benchmark::State& state) {
  std::size_t next = 0;
  const auto table = commands::command_table();
  for (auto _ : state) {
    benchmark::DoNotOptimize(commands::find_command(table[next++ % table.size()].name));
  }
}

void find_no_command(benchmark::State& state) {
  std::string_view word = "resurve";
  for (auto _ : state) {
    benchmark::DoNotOptimize(word);
    benchmark::DoNotOptimize(commands::find_command(word));
  }
}

template <class Arguments>
void read(benchmark::State& state, std::string_view text) {
  bool right = true;
  for (auto _ : state) {
    Arguments arguments;
    benchmark::DoNotOptimize(text);
    right &= protocol::parse_arguments(text, arguments);
    benchmark::DoNotOptimize(arguments);
  }
  if (!right) state.SkipWithError("the arguments are not well-formed");
}

void arguments_of_put(benchmark::State& state) {
  read<commands::PutArguments>(state, "1024 0 60 100");
}

void arguments_of_delete(benchmark::State& state) {
  read<commands::JobArguments>(state, "1000000");
}

void arguments_of_use(benchmark::State& state) {
  read<commands::TubeArguments>(state, "a-tube.of/some+length");
}

// Calls add(buffer), and consumes all bytes that it has added, like a complete write.
template <class Add>
void write_replies(benchmark::State& state, Add add) {
  protocol::ReplyBuffer replies;
  std::array<std::string_view, 64> pieces;
  std::size_t bytes = 0;
  for (auto _ : state) {
    add(replies);
    benchmark::DoNotOptimize(replies.pieces(pieces));
    bytes += replies.size();
    replies.take(replies.size());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

void reply_inserted(benchmark::State& state) {
  JobId id = 1'000'000;
  write_replies(state, [&](protocol::ReplyBuffer& replies) { replies.line("INSERTED", ++id); });
}

void reply_inserted_16_in_line(benchmark::State& state) {
  JobId id = 1'000'000;
  write_replies(state, [&](protocol::ReplyBuffer& replies) {
    for (int i = 0; i < 16; ++i) replies.line("INSERTED", ++id);
  });
}

void reply_deleted(benchmark::State& state) {
  write_replies(state,
                [](protocol::ReplyBuffer& replies) { replies.line(protocol::word::kDeleted); });
}

// A large body is not copied.
void reply_reserved(benchmark::State& state) {
  const Bytes body = Bytes::copy_of(std::string(static_cast<std::size_t>(state.range(0)), 'x'));
  write_replies(state,
                [&](protocol::ReplyBuffer& replies) { replies.job("RESERVED", 1'000'000, body); });
}

BENCHMARK(find_command);
BENCHMARK(find_no_command);
BENCHMARK(arguments_of_put);
BENCHMARK(arguments_of_delete);
BENCHMARK(arguments_of_use);
BENCHMARK(reply_inserted);
BENCHMARK(reply_inserted_16_in_line);
BENCHMARK(reply_deleted);
BENCHMARK(reply_reserved)->ArgName("bytes")->Arg(100)->Arg(16 * 1024);

}  // namespace
