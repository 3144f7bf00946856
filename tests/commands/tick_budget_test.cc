#include "commands/tick_budget.h"

#include <doctest/doctest.h>

using namespace tubed;
using namespace std::chrono_literals;
using commands::TickBudget;

namespace {

constexpr Time kBegin{1h};

// A tick, and a clock that counts how often it is read.
struct Tick {
  explicit Tick(std::size_t waiting = 0) { budget.begin(kBegin, waiting); }

  void visit(std::uint32_t work, std::size_t reply_bytes = 0) {
    budget.spend(work);
    budget.spend_visit(reply_bytes, [this] {
      ++looks;
      return now;
    });
  }

  TickBudget budget{1'000'000};
  Time now = kBegin;
  int looks = 0;
};

}  // namespace

TEST_CASE("a tick is spent when its work is done") {
  Tick tick;
  int visits = 0;
  for (; !tick.budget.is_spent(); ++visits) {
    REQUIRE(visits < 100);
    tick.visit(1000);
  }
  CHECK(visits == 8);
  tick.budget.begin(kBegin, 0);
  CHECK_FALSE(tick.budget.is_spent());
}

TEST_CASE("replies to be sent count as work") {
  Tick tick;
  int visits = 0;
  for (; !tick.budget.is_spent(); ++visits) {
    REQUIRE(visits < 100);
    tick.visit(1, 1 << 20);
  }
  CHECK(visits == 8);
}

TEST_CASE("a tick is spent when its time is over, as soon as some work shows it") {
  Tick tick;
  tick.now = kBegin + TickBudget::kTime;
  int visits = 0;
  for (; !tick.budget.is_spent(); ++visits) {
    REQUIRE(visits < 100);
    tick.visit(1);
  }
  CHECK(visits == 15);
  CHECK(tick.looks == 1);
}

TEST_CASE("the clock is read after some work, not after each small command") {
  Tick tick;
  tick.visit(1);
  CHECK(tick.looks == 0);
  for (int i = 0; i < 100; ++i) tick.visit(1);
  CHECK(tick.looks == 6);
  CHECK_FALSE(tick.budget.is_spent());
}

TEST_CASE("the clients that wait divide a tick's work among them") {
  CHECK(Tick(0).budget.quantum() == 1'000'000);
  CHECK(Tick(99).budget.quantum() == TickBudget::kWork / 100);
  CHECK(Tick(100'000).budget.quantum() == TickBudget::kLeastQuantum);
  TickBudget small(10);
  small.begin(kBegin, 99);
  CHECK(small.quantum() == 10);
}

TEST_CASE("a tick can be ended early") {
  Tick tick;
  tick.budget.spend_all();
  CHECK(tick.budget.is_spent());
}
