#include "loop/channel.h"

#include <array>
#include <memory>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "tests/loop/loopback.h"

namespace tubed::loop_test {

using loop::Channel;
using loop::Loop;
using loop::open_channel;
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

// Returns both ends of a TCP connection: unix sockets have no resets.
std::pair<os::Socket, os::Socket> tcp_pair() {
  const auto listener = os::listen_tcp("127.0.0.1", 0, 1);
  REQUIRE(listener.ok());
  os::Socket client = connect_to(os::local_address(listener.value()));
  os::Socket server(::accept4(listener.value().descriptor(), nullptr, nullptr, SOCK_NONBLOCK));
  REQUIRE(server);
  return {std::move(server), std::move(client)};
}

std::unique_ptr<Channel> watched(Loop& loop, Socket socket, loop::ChannelOwner& owner) {
  auto channel = open_channel(loop, std::move(socket), {});
  REQUIRE(channel != nullptr);
  channel->set_owner(owner);
  return channel;
}

}  // namespace

TEST_CASE("no channel is made for a descriptor that the kernel does not watch") {
  Loop loop;
  CHECK(open_channel(loop, Socket(::open("/proc/self/status", O_RDONLY | O_CLOEXEC)), {}) ==
        nullptr);
}

TEST_CASE("a channel carries bytes in both directions, in one piece or in several") {
  Loop loop;
  auto [here, there] = connected_pair();
  const auto channel = open_channel(loop, std::move(here), {});
  write_all(there, "from the peer");
  CHECK(channel->has_unread());
  std::array<char, 4> first{};
  std::array<char, 100> rest{};
  const auto read = channel->read(std::array{std::span<char>(first), std::span<char>(rest)});
  CHECK(read.bytes == 13);
  CHECK(std::string_view(first.data(), 4) == "from");
  CHECK(std::string_view(rest.data(), 9) == " the peer");
  CHECK_FALSE(channel->has_unread());
  CHECK(channel->read(std::span<char>(rest)).kind == os::Transfer::Kind::would_block);
  CHECK(channel->write("to ").bytes == 3);
  CHECK(channel->write(std::array<std::string_view, 2>{"the ", "peer"}).bytes == 8);
  CHECK(read_some(there) == "to the peer");
  channel->end_output();
  CHECK(read_to_end(there).empty());
  half_close(there);
  CHECK(channel->read(std::span<char>(rest)).kind == os::Transfer::Kind::end);
}

TEST_CASE("a channel reports the requested readiness, and nothing else") {
  Loop loop;
  Counts counts;
  auto [here, there] = connected_pair();
  const auto channel = watched(loop, std::move(here), counts);
  write_all(there, "x");
  channel->want(false, false);
  run_ticks(loop, 5);
  CHECK(counts.readable == 0);
  CHECK(counts.writable == 0);
  channel->want(true, false);
  CHECK(run_until(loop, [&] { return counts.readable > 0; }));
  CHECK(counts.writable == 0);
  channel->want(false, true);
  const int readable_before = counts.readable;
  CHECK(run_until(loop, [&] { return counts.writable > 0; }));
  CHECK(counts.readable == readable_before);
}

TEST_CASE("a half-close is reported once, whatever was wanted before and is wanted after") {
  for (const auto& [readable, writable] :
       {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    Loop loop;
    Counts counts;
    auto [here, there] = connected_pair();
    const auto channel = watched(loop, std::move(here), counts);
    channel->want(readable, writable);
    run_ticks(loop, 5);
    CHECK(counts.half_closed == 0);
    half_close(there);
    CHECK(run_until(loop, [&] { return counts.half_closed == 1; }));
    run_ticks(loop, 20);
    channel->want(true, true);
    run_ticks(loop, 20);
    channel->want(false, false);
    const int reported = counts.readable + counts.writable;
    run_ticks(loop, 20);
    CHECK(counts.half_closed == 1);
    CHECK(counts.broken == 0);
    CHECK(counts.readable + counts.writable == reported);  // it does not keep the loop busy
  }
}

TEST_CASE("a half-close before the channel was opened is reported as well") {
  Loop loop;
  Counts counts;
  auto [here, there] = connected_pair();
  half_close(there);
  const auto channel = watched(loop, std::move(here), counts);
  channel->want(false, false);
  CHECK(run_until(loop, [&] { return counts.half_closed == 1; }));
}

TEST_CASE("a reset is reported while nothing is wanted") {
  Loop loop;
  Counts counts;
  auto [here, there] = tcp_pair();
  const auto channel = watched(loop, std::move(here), counts);
  channel->want(false, false);
  run_ticks(loop, 5);
  reset(std::move(there));
  CHECK(run_until(loop, [&] { return counts.broken > 0 || counts.half_closed > 0; }));
  CHECK(counts.broken == 1);
}

TEST_CASE("a channel may be destroyed in its own callback, and its descriptor reused at once") {
  struct Leaver final : loop::ChannelOwner {
    std::unique_ptr<Channel> channel;
    int reported = 0;
    void on_ready(Readiness) override {
      ++reported;
      channel.reset();
    }
  };
  Loop loop;
  Leaver leaver;
  auto [here, there] = connected_pair();
  leaver.channel = watched(loop, std::move(here), leaver);
  leaver.channel->want(true, true);
  REQUIRE(run_until(loop, [&] { return leaver.reported > 0; }));
  Counts counts;
  auto [next_here, next_there] = connected_pair();
  const auto next = watched(loop, std::move(next_here), counts);
  next->want(true, false);
  write_all(next_there, "x");
  CHECK(run_until(loop, [&] { return counts.readable > 0; }));
  CHECK(leaver.reported == 1);
}

}  // namespace tubed::loop_test
