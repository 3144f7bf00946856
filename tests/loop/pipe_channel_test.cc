#include "loop/pipe_channel.h"

#include <array>
#include <cctype>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "loop/signal.h"

namespace tubed::loop {

namespace {

struct Pipe {
  Pipe() { REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0); }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  void close_end(std::size_t end) {
    ::close(ends[end]);
    ends[end] = -1;
  }

  std::array<int, 2> ends{};
};

// Doubles its input and writes in upper case.
PipeFilters filters() {
  return {.input =
              [](std::string_view bytes, std::string& out) {
                for (const char byte : bytes) out.append(2, byte);
              },
          .output =
              [](std::string_view bytes, std::string& out) {
                for (const char byte : bytes) {
                  out.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(byte))));
                }
              }};
}

struct Watched final : ChannelOwner {
  void on_ready(Readiness ready) override { seen.add(ready); }
  Readiness seen;
};

struct World {
  World() {
    ignore_broken_pipes();
    channel = open_pipe_channel(loop, input.ends[0], output.ends[1], filters(),
                                [this] { closed = true; });
    REQUIRE(channel != nullptr);
    channel->set_owner(owner);
  }
  Readiness ready() {
    owner.seen = {};
    loop.run_once();
    return owner.seen;
  }
  void send(std::string_view text) {
    REQUIRE(::write(input.ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  std::string read(std::size_t bytes) {
    std::string buffer(bytes, '\0');
    const auto got = channel->read(std::span(buffer));
    buffer.resize(got.bytes);
    return buffer;
  }

  Loop loop;
  Pipe input;
  Pipe output;
  Watched owner;
  bool closed = false;
  std::unique_ptr<Channel> channel;
};

}  // namespace

TEST_CASE("input is filtered, and what a buffer does not hold is reported again") {
  World world;
  world.channel->want(true, false);
  CHECK_FALSE(world.ready().readable);
  world.send("abc");
  CHECK(world.ready().readable);
  CHECK(world.read(4) == "aabb");
  CHECK(world.channel->has_unread());
  world.channel->want(true, false);
  CHECK(world.ready().readable);
  CHECK(world.read(4) == "cc");
  CHECK_FALSE(world.channel->has_unread());
  CHECK(world.channel->read(std::span<char>()).kind == os::Transfer::Kind::would_block);
}

TEST_CASE("output is filtered, and a full pipe takes no more until it is read") {
  World world;
  CHECK(world.channel->write("done").bytes == 4);
  std::array<char, 8> text{};
  CHECK(::read(world.output.ends[0], text.data(), text.size()) == 4);
  CHECK(std::string(text.data(), 4) == "DONE");
  const std::string large(1 << 20, 'x');
  const auto first = world.channel->write(large);
  CHECK(first.kind == os::Transfer::Kind::done);
  CHECK(first.bytes < large.size());
  CHECK(world.channel->write(large).kind == os::Transfer::Kind::would_block);
  world.channel->want(false, true);
  CHECK_FALSE(world.ready().writable);
  std::string taken(first.bytes, '\0');
  CHECK(::read(world.output.ends[0], taken.data(), taken.size()) ==
        static_cast<ssize_t>(taken.size()));
  CHECK(world.ready().writable);
}

TEST_CASE("the end of either side is noticed") {
  World world;
  world.channel->want(true, false);
  world.send("a");
  world.input.close_end(1);
  world.ready();
  CHECK(world.read(8) == "aa");
  world.channel->want(true, false);
  CHECK(world.ready().readable);
  std::array<char, 8> buffer;
  CHECK(world.channel->read(std::span(buffer)).kind == os::Transfer::Kind::end);
  world.output.close_end(0);
  CHECK(world.channel->write("x").kind == os::Transfer::Kind::failed);
  world.channel.reset();
  CHECK(world.closed);
}

TEST_CASE("the descriptors are blocking again afterwards") {
  World world;
  CHECK((::fcntl(world.input.ends[0], F_GETFL) & O_NONBLOCK) != 0);
  world.channel.reset();
  CHECK((::fcntl(world.input.ends[0], F_GETFL) & O_NONBLOCK) == 0);
  CHECK((::fcntl(world.output.ends[1], F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("what cannot be watched is refused, and reports no end") {
  Loop loop;
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  bool closed = false;
  CHECK(open_pipe_channel(loop, null, null, filters(), [&] { closed = true; }) == nullptr);
  CHECK_FALSE(closed);
  ::close(null);
}

}  // namespace tubed::loop
