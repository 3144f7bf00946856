// The delay of a commit, during which further changes are likely to arrive.
#include "journal/commit_delay.h"

#include <doctest/doctest.h>

using namespace tubed;
using namespace tubed::journal;
using namespace std::chrono_literals;

namespace {

constexpr Time kNow{std::chrono::hours(1)};

}  // namespace

TEST_CASE("the first commit does not wait") {
  CommitDelay delay;
  CHECK_FALSE(delay.waits(1, kNow, true));
}

TEST_CASE("a single client does not wait") {
  CommitDelay delay;
  delay.committed(1, 0, 100us, kNow);
  CHECK_FALSE(delay.waits(1, kNow, true));
}

TEST_CASE(
    "a commit waits until about as many facts are pending as before, or for two commits' "
    "duration") {
  CommitDelay delay;
  delay.committed(24, 24, 100us, kNow);
  CHECK(delay.waits(24, kNow, true));
  CHECK(delay.waits(41, kNow + 199us, true));
  CHECK_FALSE(delay.waits(42, kNow + 199us, true));
  CHECK_FALSE(delay.waits(24, kNow + 200us, true));
}

TEST_CASE("a commit never waits for more than a millisecond") {
  CommitDelay delay;
  delay.committed(24, 24, 500ms, kNow);
  CHECK(delay.waits(24, kNow + 999us, true));
  CHECK_FALSE(delay.waits(24, kNow + 1ms, true));
}

TEST_CASE("after a failed wait some commits do not wait, and more after each further failure") {
  CommitDelay delay;
  std::string waits;
  Time now = kNow;
  for (int commit = 0; commit < 40; ++commit) {
    delay.committed(10, 0, 100us, now);
    const bool waited = delay.waits(1, now, true);
    waits += waited ? 'w' : '.';
    now += 1ms;
    if (waited) CHECK_FALSE(delay.waits(1, now, true));
  }
  CHECK(waits == "w.w...w.......w...............w.........");
}

TEST_CASE("a successful wait ends the pause between waits") {
  CommitDelay delay;
  delay.committed(10, 0, 100us, kNow);
  CHECK(delay.waits(1, kNow, true));
  CHECK_FALSE(delay.waits(1, kNow + 1ms, true));  // no further change arrived
  delay.committed(10, 0, 100us, kNow);
  CHECK_FALSE(delay.waits(1, kNow, true));
  delay.committed(10, 0, 100us, kNow);
  CHECK(delay.waits(1, kNow, true));
  CHECK_FALSE(delay.waits(10, kNow, true));  // the changes arrived
  delay.committed(10, 0, 100us, kNow);
  CHECK(delay.waits(1, kNow, true));
  CHECK_FALSE(delay.waits(1, kNow + 1ms, true));
  delay.committed(10, 0, 100us, kNow);
  CHECK_FALSE(delay.waits(1, kNow, true));
  delay.committed(10, 0, 100us, kNow);
  CHECK(delay.waits(1, kNow, true));
}

TEST_CASE("a commit that is not synced waits for one poll of the loop, and not longer") {
  CommitDelay delay;
  const auto waits = [&] { return delay.waits(1, kNow, false); };
  CHECK_FALSE(waits());  // the first commit
  delay.committed(31, 0, 100us, kNow);
  // The end of the tick, and the deferred work of the next tick before the poll.
  CHECK(waits());
  CHECK(waits());
  CHECK_FALSE(waits());
  CHECK_FALSE(waits());
  delay.committed(1, 0, 100us, kNow);  // a single client
  CHECK_FALSE(waits());
}
