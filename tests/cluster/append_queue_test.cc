// The queue of the appends to a follower: what is under way, and the rate of the link.
#include "cluster/append_queue.h"

#include <string>

#include <doctest/doctest.h>

#include "cluster/part.h"

namespace tubed::cluster {

namespace {

using namespace std::chrono_literals;

constexpr AppendQueue::Options kQueueOptions{.election_timeout = 1s, .part_bytes = 8000};

Message append_with(std::size_t bytes) {
  Message append;
  append.cluster = 7;
  append.from = 1;
  append.to = 2;
  append.term = 3;
  append.entries.push_back({.term = 3, .data = Bytes::copy_of(std::string(bytes, 'x'))});
  return append;
}

// A link that carries so many bytes a second, and answers each frame after `delay`.
struct Link {
  Link(double bytes_per_second, Duration answer) : rate(bytes_per_second), delay(answer) {}

  double rate = 0;
  Duration delay{};
  AppendQueue queue{kQueueOptions};
  Time now{1h};
  Time free{};
  std::deque<std::pair<Time, Time>> answers;  // when, and the time that is returned
  std::uint64_t most_under_way = 0;
  std::size_t longest = 0;
  std::size_t frames = 0;

  void send() {
    while (const auto frame = queue.next(now)) {
      ++frames;
      longest = std::max(longest, frame->size());
      const double seconds = static_cast<double>(frame->size()) / rate;
      free = std::max(free, now) + Duration(static_cast<std::int64_t>(seconds * 1e9));
      const Time sent = is_part(*frame) ? decode_part(*frame)->sent : decode(*frame)->sent;
      answers.emplace_back(free + delay, sent);
      most_under_way = std::max(most_under_way, queue.bytes_under_way());
    }
  }
  void carry_everything() {
    for (send(); !answers.empty(); send()) {
      now = std::max(now, answers.front().first);
      const Time sent = answers.front().second;
      answers.pop_front();
      queue.acknowledge(sent, now);
    }
    CHECK_FALSE(queue.waits());
  }
};

}  // namespace

TEST_CASE("the queue learns the rate of a link, and fills it for a quarter of a timeout") {
  for (const double rate : {1e4, 1e5, 1e6, 1e7}) {
    for (const Duration delay : {Duration(1ms), Duration(20ms)}) {
      CAPTURE(rate);
      Link link(rate, delay);
      for (int i = 0; i < 20; ++i) link.queue.add(append_with(static_cast<std::size_t>(rate)));
      const Time begun = link.now;
      link.carry_everything();
      CHECK(link.queue.rate() > 0.8 * rate);
      CHECK(link.queue.rate() < 1.2 * rate);
      CHECK(static_cast<double>(link.most_under_way) < std::max(0.5 * rate, 8200.0));
      CHECK(link.longest < 8200);
      CHECK(link.now - begun < 24s);
      CHECK(link.queue.take_slow().count == 20);
      CHECK(link.queue.take_slow().count == 0);
    }
  }
}

TEST_CASE("the rate falls with the link") {
  Link link(1e6, 1ms);
  link.queue.add(append_with(5'000'000));
  link.carry_everything();
  link.rate = 1e5;
  link.queue.add(append_with(1'000'000));
  link.carry_everything();
  CHECK(link.queue.rate() < 1.3e5);
  link.rate = 1e6;
  link.queue.add(append_with(5'000'000));
  link.carry_everything();
  CHECK(link.queue.rate() > 0.8e6);
}

TEST_CASE("small appends are sent whole at once, and say nothing about the rate") {
  Link link(1e3, 100ms);
  for (int i = 0; i < 10; ++i) {
    link.queue.add(append_with(10));
    CHECK(link.queue.next(link.now));
    link.queue.acknowledge(link.queue.stamp(link.now), link.now + 1s);
  }
  CHECK(link.queue.rate() == 0);
  CHECK_FALSE(link.queue.waits());
}

TEST_CASE("frames have different times, and a time acknowledges all frames before it") {
  AppendQueue queue(kQueueOptions);
  const Time now{1h};
  CHECK(queue.stamp(now) == now);
  CHECK(queue.stamp(now) == now + 1ns);
  for (int i = 0; i < 3; ++i) queue.add(append_with(100));
  Time last;
  while (const auto frame = queue.next(now)) last = decode(*frame)->sent;
  CHECK(last == now + 4ns);
  const std::uint64_t all = queue.bytes_under_way();
  queue.acknowledge(now + 1ns, now + 1ms);
  CHECK(queue.bytes_under_way() == all);
  queue.acknowledge(now + 2ns, now + 1ms);
  CHECK(queue.bytes_under_way() == all / 3 * 2);
  CHECK_FALSE(queue.is_stuck(now + 1s));
  CHECK(queue.is_stuck(now + 1001001us));
  queue.acknowledge(last, now + 2s);
  CHECK(queue.bytes_under_way() == 0);
  CHECK_FALSE(queue.is_stuck(now + 4s));
}

TEST_CASE("what was dropped is not sent, and later parts do not continue it") {
  AppendQueue queue(kQueueOptions);
  PartAssembly assembly;
  queue.add(append_with(5000));
  const auto first = queue.next(Time(1h));
  REQUIRE(first);
  CHECK_FALSE(assembly.take(*decode_part(*first)));
  CHECK(queue.waits());
  queue.drop();
  CHECK_FALSE(queue.waits());
  CHECK(queue.bytes_under_way() == 0);
  CHECK_FALSE(queue.next(Time(1h)));
  queue.add(append_with(5000));
  std::optional<std::string> whole;
  while (const auto frame = queue.next(Time(2h))) {
    const auto part = decode_part(*frame);
    CHECK(part->frame == 2);
    queue.acknowledge(part->sent, Time(2h) + 1ms);
    whole = assembly.take(*part);
  }
  REQUIRE(whole);
  CHECK(decode(*whole)->entries.front().data.size() == 5000);
}

}  // namespace tubed::cluster
