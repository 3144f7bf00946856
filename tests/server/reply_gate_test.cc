// The commit gate of one client.
#include "server/reply_gate.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace tubed::server;

TEST_CASE("without a journal everything leaves") {
  ReplyGate gate;
  CHECK(gate.pass(10, {}) == 10);
  CHECK_FALSE(gate.holds());
}

TEST_CASE("a reply waits for what was newest when it was made") {
  ReplyGate gate;
  CHECK(gate.pass(10, {.newest = 1, .committing = 0, .durable = 0}) == 0);
  CHECK(gate.holds());
  CHECK(gate.pass(10, {.newest = 5, .committing = 1, .durable = 0}) == 0);
  CHECK(gate.pass(10, {.newest = 5, .committing = 5, .durable = 1}) == 10);
  CHECK_FALSE(gate.holds());
}

TEST_CASE("older replies leave while newer ones wait") {
  ReplyGate gate;
  CHECK(gate.pass(10, {.newest = 0, .committing = 0, .durable = 0}) == 10);
  CHECK(gate.pass(30, {.newest = 2, .committing = 0, .durable = 0}) == 10);
  gate.take(10);
  CHECK(gate.pass(20, {.newest = 2, .committing = 2, .durable = 0}) == 0);
  CHECK(gate.pass(25, {.newest = 3, .committing = 2, .durable = 0}) == 0);
  CHECK(gate.pass(25, {.newest = 3, .committing = 3, .durable = 2}) == 20);
  gate.take(7);
  CHECK(gate.pass(18, {.newest = 3, .committing = 3, .durable = 2}) == 13);
  CHECK(gate.pass(18, {.newest = 3, .committing = 3, .durable = 3}) == 18);
}

TEST_CASE("a reply that is made while nothing waits leaves at once") {
  ReplyGate gate;
  CHECK(gate.pass(5, {.newest = 9, .committing = 9, .durable = 9}) == 5);
}

TEST_CASE("against a list of every byte's number") {
  std::mt19937_64 random(3);
  for (int life = 0; life < 200; ++life) {
    ReplyGate gate;
    LogState log;
    std::vector<std::uint64_t> numbers;  // what each buffered byte waits for
    for (int step = 0; step < 200; ++step) {
      switch (random() % 4) {
        case 0:
          log.newest += random() % 3;
          break;
        case 1:  // a commit ends, and the next begins
          log.durable = log.committing;
          log.committing = log.newest;
          break;
        default:
          numbers.insert(numbers.end(), random() % 5, log.newest);
      }
      std::size_t expected = 0;
      while (expected < numbers.size() && numbers[expected] <= log.durable) ++expected;
      REQUIRE(gate.pass(numbers.size(), log) == expected);
      const std::size_t taken = expected == 0 ? 0 : random() % (expected + 1);
      gate.take(taken);
      numbers.erase(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(taken));
    }
  }
}
