// The commit gate of one client.
#include "server/commit_gate.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

using tubed::Lsn;
using tubed::server::CommitGate;

TEST_CASE("where everything is durable at once, everything is sent") {
  CommitGate gate;
  CHECK(gate.sendable(10, 0, 0) == 10);
  CHECK_FALSE(gate.holds());
}

TEST_CASE("a reply waits for what was appended when it was made") {
  CommitGate gate;
  CHECK(gate.sendable(10, 1, 0) == 0);
  CHECK(gate.holds());
  CHECK(gate.sendable(10, 5, 0) == 0);
  CHECK(gate.sendable(10, 5, 1) == 10);
  CHECK_FALSE(gate.holds());
}

TEST_CASE("older replies are sent while newer ones wait") {
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
class Life {
 public:
  explicit Life(std::uint64_t seed, std::size_t in_flight) : random_(seed), in_flight_(in_flight) {}

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

  // How many of the client's bytes the gate lets through, and how many might be.
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
  std::vector<Lsn> lsns_;  // what each buffered byte waits for
  Lsn appended_ = 0;
  Lsn durable_ = 0;
};

}  // namespace

TEST_CASE("against a list of every byte's number, with up to eight commits in flight") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    Life life(seed, 1 + seed % 8);
    for (int step = 0; step < 200; ++step) {
      life.step();
      const std::size_t sendable = life.sendable();
      REQUIRE(sendable == life.durable());
      life.send_some(sendable);
    }
  }
}

TEST_CASE("with very many ticks in one commit nothing is sent too early, and all in the end") {
  Life life(1, 1);
  for (int tick = 0; tick < 10'000; ++tick) {
    life.append_and_reply();
    REQUIRE(life.sendable() == 0);
  }
  life.end_all_commits();
  CHECK(life.sendable() == life.buffered());
}
