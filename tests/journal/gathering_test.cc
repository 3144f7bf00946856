// Whether a commit waits for those who are likely to come.
#include "journal/gathering.h"

#include <doctest/doctest.h>

using namespace tubed;
using namespace tubed::journal;
using namespace std::chrono_literals;

namespace {

constexpr Time kNow{std::chrono::hours(1)};

}  // namespace

TEST_CASE("the first commit waits for nobody") {
  Gathering gathering;
  CHECK_FALSE(gathering.waits(1, kNow));
}

TEST_CASE("a client that is alone is not kept waiting") {
  Gathering gathering;
  gathering.committed(1, 0, 100us, kNow);
  CHECK_FALSE(gathering.waits(1, kNow));
}

TEST_CASE("a commit waits until about as many are there as there were, or for two commits' time") {
  Gathering gathering;
  gathering.committed(24, 24, 100us, kNow);
  CHECK(gathering.waits(24, kNow));
  CHECK(gathering.waits(41, kNow + 199us));
  CHECK_FALSE(gathering.waits(42, kNow + 199us));
  CHECK_FALSE(gathering.waits(24, kNow + 200us));
}

TEST_CASE("it never waits for more than a millisecond") {
  Gathering gathering;
  gathering.committed(24, 24, 500ms, kNow);
  CHECK(gathering.waits(24, kNow + 999us));
  CHECK_FALSE(gathering.waits(24, kNow + 1ms));
}

TEST_CASE(
    "who waited in vain does not wait the next time, and longer not when it is in vain again") {
  Gathering gathering;
  std::string waits;
  Time now = kNow;
  for (int commit = 0; commit < 40; ++commit) {
    gathering.committed(10, 0, 100us, now);
    const bool waited = gathering.waits(1, now);
    waits += waited ? 'w' : '.';
    now += 1ms;
    if (waited) CHECK_FALSE(gathering.waits(1, now));
  }
  CHECK(waits == "w.w...w.......w...............w.........");
}

TEST_CASE("to have waited for good reason ends that") {
  Gathering gathering;
  gathering.committed(10, 0, 100us, kNow);
  CHECK(gathering.waits(1, kNow));
  CHECK_FALSE(gathering.waits(1, kNow + 1ms));  // in vain
  gathering.committed(10, 0, 100us, kNow);
  CHECK_FALSE(gathering.waits(1, kNow));
  gathering.committed(10, 0, 100us, kNow);
  CHECK(gathering.waits(1, kNow));
  CHECK_FALSE(gathering.waits(10, kNow));  // they came
  gathering.committed(10, 0, 100us, kNow);
  CHECK(gathering.waits(1, kNow));
  CHECK_FALSE(gathering.waits(1, kNow + 1ms));
  gathering.committed(10, 0, 100us, kNow);
  CHECK_FALSE(gathering.waits(1, kNow));
  gathering.committed(10, 0, 100us, kNow);
  CHECK(gathering.waits(1, kNow));
}

TEST_CASE("a commit that is not synced waits until the loop has looked once more, and not longer") {
  SecondLook look;
  CHECK_FALSE(look.waits());  // the first one knows nobody
  look.committed(31);
  int times = 0;
  while (look.waits()) ++times;
  CHECK(times == 4);
  CHECK_FALSE(look.waits());
  look.committed(1);  // a client that is alone
  CHECK_FALSE(look.waits());
}
