#include "node/frame_channel.h"

#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "loop/signal.h"
#include "tests/server/peer_frames.h"

namespace tubed::server_test {

using loop_test::connected_pair;
using loop_test::run_ticks;
using loop_test::run_until;
using node::FrameChannel;

namespace {

struct FrameOwner final : node::FrameChannelOwner {
  std::vector<std::string> frames;
  std::vector<std::string> reasons;
  std::function<void()> then = [] {};

  void on_frame(std::string_view frame) override {
    frames.emplace_back(frame);
    then();
    CHECK(frames.back() == frame);  // still valid
  }
  void on_closed(std::string_view reason) override {
    reasons.emplace_back(reason);
    then();
  }
};

struct TestChannel {
  explicit TestChannel(std::size_t most = FrameChannel::kAnyFrame) {
    loop::ignore_broken_pipes();
    auto [here, other] = connected_pair();
    channel = std::make_unique<FrameChannel>(loop, loop::open_channel(loop, std::move(here), {}),
                                             owner, most);
    there.socket = std::move(other);
  }

  loop::Loop loop;
  FrameOwner owner;
  std::unique_ptr<FrameChannel> channel;
  RawPeer there{loop, {}};
};

}  // namespace

TEST_CASE("frames are delivered whole, however their bytes arrive") {
  const std::string bytes = frame_of(1) + frame_of(2, 100) + frame_of(3);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    TestChannel test;
    test.there.send(bytes.substr(0, cut));
    run_ticks(test.loop, 2);
    if (cut < bytes.size()) test.there.send(bytes.substr(cut));
    REQUIRE(run_until(test.loop, [&] { return test.owner.frames.size() == 3; }));
    CHECK(index_of(test.owner.frames[0]) == 1);
    CHECK(index_of(test.owner.frames[1], 100) == 2);
    CHECK(index_of(test.owner.frames[2]) == 3);
  }
  TestChannel test;
  for (const char byte : bytes) {
    test.there.send(std::string(1, byte));
    run_ticks(test.loop, 1);
  }
  CHECK(run_until(test.loop, [&] { return test.owner.frames.size() == 3; }));
}

TEST_CASE("large and small frames arrive in order") {
  TestChannel test;
  FrameOwner other;
  FrameChannel sender(test.loop, loop::open_channel(test.loop, std::move(test.there.socket), {}),
                      other);
  const std::vector<std::size_t> sizes = {0, 20U << 20, 0, 300'000, 1, 5U << 20, 262'144, 524'288};
  for (std::size_t i = 0; i < 4 * sizes.size(); ++i)
    sender.send(frame_of(i + 1, sizes[i % sizes.size()] / (i / sizes.size() + 1)));
  CHECK(sender.unsent() > 20U << 20);
  REQUIRE(run_until(test.loop, [&] { return test.owner.frames.size() == 4 * sizes.size(); }));
  for (std::size_t i = 0; i < 4 * sizes.size(); ++i) {
    const std::size_t bytes = sizes[i % sizes.size()] / (i / sizes.size() + 1);
    CHECK(index_of(test.owner.frames[i], bytes) == i + 1);
  }
  CHECK(sender.unsent() == 0);
  CHECK(test.channel->read_ahead() == 0);
}

TEST_CASE("bytes that are no frame, or too long a frame, close the connection") {
  const std::string longest = frame_of(1, 1000);
  for (const std::string& bytes :
       {std::string(8, '\0'), std::string(4, '\xff'), std::string("GET / HTTP/1.1\r\n\r\n"),
        std::string("\x03\0\0\0", 4), longest}) {
    TestChannel test(longest.size() - 1);
    test.there.send(frame_of(1) + bytes);
    REQUIRE(run_until(test.loop, [&] { return !test.owner.reasons.empty(); }));
    CHECK(test.owner.frames.size() == 1);
    CHECK(test.owner.reasons.front() == "the other node has sent something that is no frame");
    CHECK(test.there.is_closed());
    run_ticks(test.loop, 3);
    CHECK(test.owner.reasons.size() == 1);
  }
  TestChannel test(longest.size());
  test.there.send(longest);
  CHECK(run_until(test.loop, [&] { return test.owner.frames.size() == 1; }));
}

TEST_CASE("the end of the connection is reported once, after the frames before it") {
  TestChannel test;
  test.there.send(frame_of(1) + frame_of(2).substr(0, 50));
  loop_test::half_close(test.there.socket);
  REQUIRE(run_until(test.loop, [&] { return !test.owner.reasons.empty(); }));
  CHECK(test.owner.frames.size() == 1);
  CHECK(test.channel->peer_has_ended());
  CHECK(test.owner.reasons == std::vector<std::string>{"the other node has closed the connection"});
  test.channel->send(frame_of(3));  // nothing happens
  run_ticks(test.loop, 3);
  CHECK(test.owner.reasons.size() == 1);
}

TEST_CASE("a channel may be destroyed while it delivers a frame, or the end") {
  TestChannel test;
  test.owner.then = [&] { test.channel.reset(); };
  test.there.send(frame_of(1, 1000) + frame_of(2));
  REQUIRE(run_until(test.loop, [&] { return test.channel == nullptr; }));
  run_ticks(test.loop, 3);
  CHECK(test.owner.frames.size() == 1);
  CHECK(test.owner.reasons.empty());

  TestChannel ended;
  ended.owner.then = [&] { ended.channel.reset(); };
  ended.there.socket = {};
  REQUIRE(run_until(ended.loop, [&] { return ended.channel == nullptr; }));
  CHECK(ended.owner.reasons.size() == 1);
}

TEST_CASE("what the kernel does not take is buffered, and sent when it does") {
  TestChannel test;
  constexpr std::size_t kBytes = 4U << 20;
  for (cluster::Index i = 1; i <= 3; ++i) test.channel->send(frame_of(i, kBytes));
  CHECK(test.channel->unsent() > 2 * kBytes);
  for (cluster::Index i = 4; i <= 200; ++i) test.channel->send(frame_of(i));
  for (cluster::Index i = 1; i <= 3; ++i) CHECK(index_of(test.there.take_frame(), kBytes) == i);
  for (cluster::Index i = 4; i <= 200; ++i) CHECK(index_of(test.there.take_frame()) == i);
  CHECK(test.channel->unsent() == 0);
}

TEST_CASE("a send that fails is reported later") {
  TestChannel test;
  test.there.socket = {};
  test.channel->send(frame_of(1));
  CHECK(test.owner.reasons.empty());
  REQUIRE(run_until(test.loop, [&] { return !test.owner.reasons.empty(); }));
  CHECK(test.owner.reasons.front() == "the connection is lost");
}

TEST_CASE("a channel gives up its socket with what was read ahead") {
  TestChannel test;
  FrameChannel::Released released;
  test.owner.then = [&] {
    released = test.channel->release();
    test.channel.reset();
  };
  test.there.send(frame_of(1) + frame_of(2) + "half");
  REQUIRE(run_until(test.loop, [&] { return test.channel == nullptr; }));
  CHECK(released.read_ahead == frame_of(2) + "half");
  test.there.send("more");
  CHECK(loop_test::read_exactly(released.connection.socket, 4) == "more");
  loop_test::write_all(released.connection.socket, "back");
  CHECK(loop_test::read_exactly(test.there.socket, 4) == "back");
  run_ticks(test.loop, 3);
  CHECK(test.owner.reasons.empty());
}

TEST_CASE("a channel without its connection cannot release it") {
  TestChannel test;
  test.there.socket = {};
  REQUIRE(run_until(test.loop, [&] { return !test.owner.reasons.empty(); }));
  CHECK_FALSE(test.channel->release().connection);
  CHECK(test.channel->peer() == "?");
}

}  // namespace tubed::server_test
