#include "loop/memory_channel.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "os/clock.h"
#include "tests/loop/loopback.h"

namespace tubed::loop_test {

using loop::Channel;
using loop::ChannelOwner;
using loop::Loop;
using loop::MemoryChannel;
using loop::MemoryPeer;
using loop::MemoryReports;
using loop::Readiness;
using os::Transfer;

namespace {

struct TestPeer final : MemoryPeer {
  int calls = 0;
  bool closed = false;

  void on_channel() override { ++calls; }
  void on_channel_closed() override { closed = true; }
};

struct TestChannelOwner final : ChannelOwner {
  std::vector<Readiness> reports;
  std::function<void()> reported = [] {};

  void on_ready(Readiness ready) override {
    reports.push_back(ready);
    reported();
  }
};

struct Pair {
  Loop& loop;
  TestPeer peer;
  TestChannelOwner owner;
  std::unique_ptr<MemoryChannel> channel;

  Pair(Loop& its_loop, MemoryReports& reports)
      : loop(its_loop), channel(std::make_unique<MemoryChannel>(reports, "the peer", peer)) {
    channel->set_owner(owner);
  }

  bool reported(std::size_t count = 1) {
    return run_until(loop, [&] { return owner.reports.size() >= count; });
  }
  std::string read(std::size_t bytes = 100) {
    std::string buffer(bytes, '\0');
    const Transfer got = channel->read(std::span<char>(buffer));
    CHECK(got.kind == (got.bytes > 0 ? Transfer::Kind::done : Transfer::Kind::would_block));
    return buffer.substr(0, got.bytes);
  }
};

struct OnePair {
  Loop loop;
  MemoryReports reports{loop};
  Pair pair{loop, reports};
};

TEST_CASE("bytes from the peer are reported later, and read in pieces") {
  OnePair one;
  Pair& pair = one.pair;
  CHECK(pair.channel->peer() == "the peer");
  pair.channel->want(true, false);
  CHECK(pair.owner.reports.empty());
  pair.channel->send("hello");
  CHECK(pair.owner.reports.empty());
  REQUIRE(pair.reported());
  CHECK(pair.owner.reports[0].readable);
  CHECK_FALSE(pair.owner.reports[0].writable);
  CHECK(pair.channel->has_unread());
  CHECK(pair.read(2) == "he");
  CHECK(pair.peer.calls == 1);
  pair.channel->send("!");
  CHECK(pair.read() == "llo!");
  CHECK_FALSE(pair.channel->has_unread());
  CHECK(pair.read().empty());
}

TEST_CASE("two buffers are filled in order") {
  OnePair one;
  one.pair.channel->send("abcdef");
  std::array<char, 2> first{};
  std::array<char, 9> second{};
  const std::array<std::span<char>, 2> buffers = {first, second};
  CHECK(one.pair.channel->read(std::span<const std::span<char>>(buffers)).bytes == 6);
  CHECK(std::string(first.data(), 2) == "ab");
  CHECK(std::string(second.data(), 4) == "cdef");
}

TEST_CASE("readiness is reported while it is wanted, and again after the next want") {
  OnePair one;
  Pair& pair = one.pair;
  pair.channel->send("x");
  pair.channel->want(true, false);
  pair.channel->pause();
  run_ticks(one.loop, 20);
  for (const Readiness& report : pair.owner.reports) CHECK_FALSE(report.readable);
  const std::size_t before = pair.owner.reports.size();
  pair.channel->want(true, false);
  REQUIRE(pair.reported(before + 1));
  CHECK(pair.owner.reports.back().readable);
}

TEST_CASE("after the end of the input, the end is read") {
  OnePair one;
  Pair& pair = one.pair;
  pair.channel->want(true, false);
  pair.channel->send("last");
  pair.channel->end_input();
  REQUIRE(pair.reported());
  CHECK(pair.read() == "last");
  std::array<char, 4> buffer{};
  CHECK(pair.channel->read(std::span<char>(buffer)).kind == Transfer::Kind::end);
}

TEST_CASE("both directions are bounded") {
  OnePair one;
  Pair& pair = one.pair;
  CHECK(pair.channel->room() == MemoryChannel::kBufferBytes);
  pair.channel->send(std::string(1000, 'x'));
  CHECK(pair.channel->room() == MemoryChannel::kBufferBytes - 1000);
  const std::string much(MemoryChannel::kBufferBytes + 5, 'y');
  CHECK(pair.channel->write(much).bytes == MemoryChannel::kBufferBytes);
  CHECK(pair.channel->write("more").kind == Transfer::Kind::would_block);
  pair.channel->want(false, true);
  run_ticks(one.loop, 20);
  CHECK(pair.owner.reports.empty());
  pair.channel->output().clear();
  pair.channel->output_taken();
  REQUIRE(pair.reported());
  CHECK(pair.owner.reports[0].writable);
  const std::array<std::string_view, 2> pieces = {"ab", "cd"};
  CHECK(pair.channel->write(std::span<const std::string_view>(pieces)).bytes == 4);
  CHECK(pair.channel->output() == "abcd");
}

TEST_CASE("a peer that disconnects breaks the connection, and is not called again") {
  OnePair one;
  Pair& pair = one.pair;
  pair.channel->want(true, false);
  pair.channel->send("x");
  pair.channel->disconnect();
  REQUIRE(pair.reported());
  CHECK(pair.owner.reports[0].broken);
  CHECK(pair.read() == "x");
  CHECK(pair.peer.calls == 0);
  CHECK(pair.channel->write("y").kind == Transfer::Kind::failed);
  pair.channel.reset();
  CHECK_FALSE(pair.peer.closed);
}

TEST_CASE("the peer is notified of the end, whenever the channel is destroyed") {
  OnePair one;
  Pair& pair = one.pair;
  pair.channel->want(true, false);
  pair.channel->send("x");
  SUBCASE("while a report is due") {
    pair.channel.reset();
  }
  SUBCASE("in the report") {
    pair.owner.reported = [&] { pair.channel.reset(); };
    REQUIRE(pair.reported());
  }
  SUBCASE("in the report of another channel") {
    Pair other(one.loop, one.reports);
    other.channel->want(true, false);
    other.channel->send("y");
    pair.owner.reported = [&] {
      other.channel.reset();
      pair.channel.reset();
    };
    REQUIRE(pair.reported());
    CHECK(other.owner.reports.empty());
    CHECK(other.peer.closed);
  }
  CHECK(pair.peer.closed);
  run_ticks(one.loop, 5);
}

TEST_CASE("channels take turns, and each iteration of the loop serves some of them") {
  Loop loop;
  MemoryReports reports(loop);
  std::vector<std::unique_ptr<Pair>> pairs;
  int iterations = 0;
  for (int i = 0; i < 20; ++i) {
    Pair& pair = *pairs.emplace_back(std::make_unique<Pair>(loop, reports));
    pair.channel->want(true, false);
    pair.channel->send("x");
    // Takes longer than one iteration may.
    pair.owner.reported = [] {
      const Time end = os::monotonic_now() + MemoryReports::kReportTime;
      while (os::monotonic_now() < end) {
      }
    };
  }
  const auto served = [&] {
    return std::ranges::count_if(pairs,
                                 [](const auto& pair) { return !pair->owner.reports.empty(); });
  };
  while (served() < 20) {
    const auto before = served();
    run_ticks(loop);
    ++iterations;
    CHECK(served() - before <= 1);
    REQUIRE(iterations < 1000);
  }
  CHECK(iterations >= 20);
}

}  // namespace
}  // namespace tubed::loop_test
