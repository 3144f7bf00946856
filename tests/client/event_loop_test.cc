#include "client/event_loop.h"

#include <array>
#include <csignal>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace tubed::client {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    in = os::Descriptor(ends[0]);
    out = os::Descriptor(ends[1]);
  }
  void write() const { REQUIRE(::write(out.number(), "x", 1) == 1); }
  void read() const {
    char byte = 0;
    REQUIRE(::read(in.number(), &byte, 1) == 1);
  }

  os::Descriptor in;
  os::Descriptor out;
};

std::unique_ptr<EventLoop> make_loop() {
  auto loop = EventLoop::create();
  REQUIRE(loop);
  return std::move(*loop);
}

// A time that has passed: run_once() does not wait.
constexpr TimePoint kPast = TimePoint::min();

}  // namespace

TEST_CASE("a handler is called in every tick until its input is read") {
  const auto loop = make_loop();
  const Pipe pipe;
  int calls = 0;
  const auto watch = loop->watch(pipe.in.number(), [&](EventLoop::Ready ready) -> Result<void> {
    CHECK(ready.readable);
    if (++calls == 2) pipe.read();
    return {};
  });
  REQUIRE(watch);
  CHECK_FALSE(*loop->run_once(Clock::now()));
  pipe.write();
  CHECK(*loop->run_once(std::nullopt));
  CHECK(*loop->run_once(std::nullopt));
  CHECK_FALSE(*loop->run_once(Clock::now()));
  CHECK(calls == 2);
}

TEST_CASE("a closed peer is readable, and a hang-up") {
  const auto loop = make_loop();
  Pipe pipe;
  bool hung_up = false;
  const auto watch = loop->watch(pipe.in.number(), [&](EventLoop::Ready ready) -> Result<void> {
    hung_up = ready.readable && ready.hung_up;
    return {};
  });
  pipe.out = os::Descriptor();
  CHECK(*loop->run_once(std::nullopt));
  CHECK(hung_up);
}

TEST_CASE("a watch that a handler destroys gets no event of the same tick") {
  const auto loop = make_loop();
  const Pipe one;
  const Pipe other;
  std::array<EventLoop::Watch, 2> watches;
  int calls = 0;
  const auto destroy_both = [&](EventLoop::Ready) -> Result<void> {
    ++calls;
    for (auto& watch : watches) watch.reset();
    return {};
  };
  watches[0] = std::move(*loop->watch(one.in.number(), destroy_both));
  watches[1] = std::move(*loop->watch(other.in.number(), destroy_both));
  one.write();
  other.write();
  CHECK(*loop->run_once(std::nullopt));
  CHECK(calls == 1);
  // The next watch reuses a free entry; handlers of destroyed watches are not called.
  const auto watch = loop->watch(one.in.number(), [&](EventLoop::Ready) -> Result<void> {
    one.read();
    return {};
  });
  CHECK(*loop->run_once(std::nullopt));
  CHECK(calls == 1);
}

TEST_CASE("a handler is called for output only on request") {
  const auto loop = make_loop();
  const Pipe pipe;
  int calls = 0;
  auto watch = loop->watch(pipe.out.number(), [&](EventLoop::Ready ready) -> Result<void> {
    CHECK(ready.writable);
    ++calls;
    return {};
  });
  CHECK_FALSE(*loop->run_once(kPast));
  REQUIRE(watch->watch_writable(true));
  CHECK(*loop->run_once(kPast));
  REQUIRE(watch->watch_writable(false));
  CHECK_FALSE(*loop->run_once(kPast));
  CHECK(calls == 1);
}

TEST_CASE("the timer fires when it is due, and until it is set again") {
  const auto loop = make_loop();
  int fired = 0;
  loop->on_timer([&fired]() -> Result<void> {
    ++fired;
    return {};
  });
  const auto due = Clock::now() + milliseconds(5);
  REQUIRE(loop->set_timer(due));
  CHECK(*loop->run_once(std::nullopt));
  CHECK(Clock::now() >= due);
  CHECK(fired == 1);
  REQUIRE(loop->set_timer(std::nullopt));
  CHECK_FALSE(*loop->run_once(Clock::now() + milliseconds(1)));
  CHECK(fired == 1);
}

TEST_CASE("a handler's error ends the tick") {
  const auto loop = make_loop();
  const Pipe pipe;
  const auto watch = loop->watch(pipe.in.number(),
                                 [](EventLoop::Ready) -> Result<void> { return Error{"enough"}; });
  pipe.write();
  const auto tick = loop->run_once(std::nullopt);
  REQUIRE_FALSE(tick);
  CHECK(tick.error().message == "enough");
}

TEST_CASE("signals are input, one at a time") {
  auto signals = SignalInput::block({SIGUSR1, SIGUSR2});
  REQUIRE(signals);
  const auto loop = make_loop();
  std::vector<int> taken;
  const auto watch = loop->watch(signals->descriptor(), [&](EventLoop::Ready) -> Result<void> {
    while (const auto signal = signals->take()) taken.push_back(*signal);
    return {};
  });
  ::kill(::getpid(), SIGUSR2);
  ::kill(::getpid(), SIGUSR1);
  CHECK(*loop->run_once(std::nullopt));
  CHECK(taken.size() == 2);
  CHECK_FALSE(signals->take());
  ::kill(::getpid(), SIGUSR1);
  signals->unblock();  // drops the pending signal, which would end the process
}

TEST_CASE("wait_for() waits for one descriptor, for at most the timeout") {
  const Pipe pipe;
  CHECK_FALSE(*wait_for(pipe.in.number(), POLLIN, milliseconds(1)));
  pipe.write();
  CHECK(*wait_for(pipe.in.number(), POLLIN, Duration::max()));
  CHECK_FALSE(*wait_for(-1, POLLIN, Duration(0)));
}

}  // namespace tubed::client
