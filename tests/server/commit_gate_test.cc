// CommitGate, against a naive list of the Lsn of each byte.
#include "serving/commit_gate.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

using tubed::Lsn;
using tubed::serving::CommitGate;

TEST_CASE("with a log that is durable at once, everything is sent") {
  CommitGate gate;
  CHECK(gate.sendable(10, 0, 0) == 10);
  CHECK_FALSE(gate.holds());
}

TEST_CASE("a reply waits for the position at which it was made") {
  CommitGate gate;
  CHECK(gate.sendable(10, 1, 0) == 0);
  CHECK(gate.holds());
  CHECK(gate.sendable(10, 5, 0) == 0);
  CHECK(gate.sendable(10, 5, 1) == 10);
  CHECK_FALSE(gate.holds());
}

TEST_CASE("older replies are sent while newer replies wait") {
  CommitGate gate;
  CHECK(gate.sendable(10, 0, 0) == 10);
  CHECK(gate.sendable(30, 2, 0) == 10);
  gate.sent(10);
  CHECK(gate.sendable(20, 2, 0) == 0);
  CHECK(gate.sendable(25, 3, 0) == 0);
  CHECK(gate.sendable(25, 3, 2) == 20);
  gate.sent(7);
  CHECK(gate.sendable(18, 3, 2) == 13);
  CHECK(gate.sendable(18, 3, 3) == 18);
}

TEST_CASE("a reply that is made while nothing waits is sent at once") {
  CommitGate gate;
  CHECK(gate.sendable(5, 9, 9) == 5);
}

namespace {

// A log with several commits in flight, which end in order, and a client.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed, std::size_t in_flight)
      : random_(seed), in_flight_(in_flight) {}

  void step() {
    switch (random_() % 4) {
      case 0:
        appended_ += random_() % 3;
        break;
      case 1:
        if (!commits_.empty() && (commits_.size() == in_flight_ || random_() % 2 == 0)) {
          durable_ = commits_.front();
          commits_.erase(commits_.begin());
        } else {
          commits_.push_back(appended_);
        }
        break;
      default:
        lsns_.insert(lsns_.end(), random_() % 5, appended_);
    }
  }

  // Bytes that may be sent, according to the gate and to the naive list.
  std::size_t sendable() { return gate_.sendable(lsns_.size(), appended_, durable_); }
  std::size_t durable() const {
    std::size_t count = 0;
    while (count < lsns_.size() && lsns_[count] <= durable_) ++count;
    return count;
  }
  void send_some(std::size_t sendable) {
    const std::size_t sent = sendable == 0 ? 0 : random_() % (sendable + 1);
    gate_.sent(sent);
    lsns_.erase(lsns_.begin(), lsns_.begin() + static_cast<std::ptrdiff_t>(sent));
  }
  void end_all_commits() { durable_ = appended_; }
  std::size_t buffered() const { return lsns_.size(); }
  void append_and_reply() {
    ++appended_;
    lsns_.push_back(appended_);
  }

 private:
  std::mt19937_64 random_;
  std::size_t in_flight_;
  CommitGate gate_;
  std::vector<Lsn> commits_;
  std::vector<Lsn> lsns_;  // the position for which each buffered byte waits
  Lsn appended_ = 0;
  Lsn durable_ = 0;
};

}  // namespace

TEST_CASE("the gate agrees with the naive list, with up to eight commits in flight") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    Simulation simulation(seed, 1 + seed % 8);
    for (int step = 0; step < 200; ++step) {
      simulation.step();
      const std::size_t sendable = simulation.sendable();
      REQUIRE(sendable == simulation.durable());
      simulation.send_some(sendable);
    }
  }
}

TEST_CASE(
    "with thousands of ticks in one commit nothing is sent too early, and everything after it") {
  Simulation simulation(1, 1);
  for (int tick = 0; tick < 10'000; ++tick) {
    simulation.append_and_reply();
    REQUIRE(simulation.sendable() == 0);
  }
  simulation.end_all_commits();
  CHECK(simulation.sendable() == simulation.buffered());
}
