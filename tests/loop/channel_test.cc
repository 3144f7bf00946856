#include "loop/channel.h"

#include <memory>
#include <optional>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "tests/loop/loopback.h"

namespace tubed::loop_test {

using loop::Channel;
using loop::Loop;
using loop::Readiness;
using os::Socket;

namespace {

struct Counts final : loop::ChannelOwner {
  int readable = 0;
  int writable = 0;
  int half_closed = 0;
  int broken = 0;

  void on_ready(Readiness ready) override {
    readable += ready.readable ? 1 : 0;
    writable += ready.writable ? 1 : 0;
    half_closed += ready.half_closed ? 1 : 0;
    broken += ready.broken ? 1 : 0;
  }
};

// Both ends of one connection over TCP: resets come only there.
std::pair<os::Socket, os::Socket> tcp_pair() {
  const auto listener = os::listen_tcp("127.0.0.1", 0, 1);
  REQUIRE(listener.ok());
  os::Socket client = connect_to(os::local_address(listener.value()));
  os::Socket server(::accept4(listener.value().descriptor(), nullptr, nullptr, SOCK_NONBLOCK));
  REQUIRE(server);
  return {std::move(server), std::move(client)};
}

}  // namespace

TEST_CASE("a stream that the kernel does not watch says so and tells nothing") {
  Loop loop;
  Counts counts;
  Channel stream(loop, os::Socket(::open("/proc/self/status", O_RDONLY | O_CLOEXEC)), counts);
  CHECK_FALSE(stream.usable());
  stream.want(true, true);
  loop.run_once();
  CHECK(counts.readable + counts.writable + counts.broken == 0);
}

TEST_CASE("a stream tells what it was asked for, and nothing else") {
  Loop loop;
  Counts counts;
  auto [here, there] = connected_pair();
  Channel stream(loop, std::move(here), counts);
  write_all(there, "x");
  stream.want(false, false);
  turn(loop, 5);
  CHECK(counts.readable == 0);
  CHECK(counts.writable == 0);
  stream.want(true, false);
  CHECK(run_until(loop, [&] { return counts.readable > 0; }));
  CHECK(counts.writable == 0);
  stream.want(false, true);
  const int readable_before = counts.readable;
  CHECK(run_until(loop, [&] { return counts.writable > 0; }));
  CHECK(counts.readable == readable_before);
}

TEST_CASE("a half-close is told once, whatever is wanted before and after") {
  for (const auto& [readable, writable] :
       {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    Loop loop;
    Counts counts;
    auto [here, there] = connected_pair();
    Channel stream(loop, std::move(here), counts);
    stream.want(readable, writable);
    turn(loop, 5);
    CHECK(counts.half_closed == 0);
    half_close(there);
    CHECK(run_until(loop, [&] { return counts.half_closed == 1; }));
    turn(loop, 20);
    stream.want(true, true);
    turn(loop, 20);
    stream.want(false, false);
    const int told = counts.readable + counts.writable;
    turn(loop, 20);
    CHECK(counts.half_closed == 1);
    CHECK(counts.broken == 0);
    CHECK(counts.readable + counts.writable == told);  // the loop is not kept busy by it
  }
}

TEST_CASE("a half-close that came before the stream is told as well") {
  Loop loop;
  Counts counts;
  auto [here, there] = connected_pair();
  half_close(there);
  Channel stream(loop, std::move(here), counts);
  stream.want(false, false);
  CHECK(run_until(loop, [&] { return counts.half_closed == 1; }));
}

TEST_CASE("a reset is told while nothing is wanted") {
  Loop loop;
  Counts counts;
  auto [here, there] = tcp_pair();
  Channel stream(loop, std::move(here), counts);
  stream.want(false, false);
  turn(loop, 5);
  reset(std::move(there));
  CHECK(run_until(loop, [&] { return counts.broken > 0 || counts.half_closed > 0; }));
  CHECK(counts.broken == 1);
}

TEST_CASE("a stream may go in its own callback, and its descriptor be used again at once") {
  struct Leaver final : loop::ChannelOwner {
    std::optional<Channel> stream;
    int told = 0;
    void on_ready(Readiness) override {
      ++told;
      stream.reset();
    }
  };
  Loop loop;
  Leaver leaver;
  auto [here, there] = connected_pair();
  leaver.stream.emplace(loop, std::move(here), leaver);
  leaver.stream->want(true, true);
  REQUIRE(run_until(loop, [&] { return leaver.told > 0; }));
  Counts counts;
  auto [next_here, next_there] = connected_pair();
  Channel next(loop, std::move(next_here), counts);
  next.want(true, false);
  write_all(next_there, "x");
  CHECK(run_until(loop, [&] { return counts.readable > 0; }));
  CHECK(leaver.told == 1);
}

}  // namespace tubed::loop_test
