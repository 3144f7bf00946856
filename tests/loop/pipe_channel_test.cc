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

struct PipedChannel {
  PipedChannel() {
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

TEST_CASE("input is filtered, and the rest of a full buffer is reported again") {
  PipedChannel piped;
  piped.channel->want(true, false);
  CHECK_FALSE(piped.ready().readable);
  piped.send("abc");
  CHECK(piped.ready().readable);
  CHECK(piped.read(4) == "aabb");
  CHECK(piped.channel->has_unread());
  piped.channel->want(true, false);
  CHECK(piped.ready().readable);
  CHECK(piped.read(4) == "cc");
  CHECK_FALSE(piped.channel->has_unread());
  CHECK(piped.channel->read(std::span<char>()).kind == os::Transfer::Kind::would_block);
}

TEST_CASE("output is filtered, and a full pipe takes no more until it is read") {
  PipedChannel piped;
  CHECK(piped.channel->write("done").bytes == 4);
  std::array<char, 8> text{};
  CHECK(::read(piped.output.ends[0], text.data(), text.size()) == 4);
  CHECK(std::string(text.data(), 4) == "DONE");
  const std::string large(1 << 20, 'x');
  const auto first = piped.channel->write(large);
  CHECK(first.kind == os::Transfer::Kind::done);
  CHECK(first.bytes < large.size());
  CHECK(piped.channel->write(large).kind == os::Transfer::Kind::would_block);
  piped.channel->want(false, true);
  CHECK_FALSE(piped.ready().writable);
  std::string taken(first.bytes, '\0');
  CHECK(::read(piped.output.ends[0], taken.data(), taken.size()) ==
        static_cast<ssize_t>(taken.size()));
  CHECK(piped.ready().writable);
}

TEST_CASE("the end of either direction is noticed") {
  PipedChannel piped;
  piped.channel->want(true, false);
  piped.send("a");
  piped.input.close_end(1);
  piped.ready();
  CHECK(piped.read(8) == "aa");
  piped.channel->want(true, false);
  CHECK(piped.ready().readable);
  std::array<char, 8> buffer;
  CHECK(piped.channel->read(std::span(buffer)).kind == os::Transfer::Kind::end);
  piped.output.close_end(0);
  CHECK(piped.channel->write("x").kind == os::Transfer::Kind::failed);
  piped.channel.reset();
  CHECK(piped.closed);
}

TEST_CASE("the descriptors are blocking again afterwards") {
  PipedChannel piped;
  CHECK((::fcntl(piped.input.ends[0], F_GETFL) & O_NONBLOCK) != 0);
  piped.channel.reset();
  CHECK((::fcntl(piped.input.ends[0], F_GETFL) & O_NONBLOCK) == 0);
  CHECK((::fcntl(piped.output.ends[1], F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("an input that cannot be watched is refused, and `closed` is not called") {
  Loop loop;
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  bool closed = false;
  CHECK(open_pipe_channel(loop, null, null, filters(), [&] { closed = true; }) == nullptr);
  CHECK_FALSE(closed);
  ::close(null);
}

}  // namespace tubed::loop
