#include "base/time.h"

#include <doctest/doctest.h>

namespace tubed {

TEST_CASE("whole seconds are rounded down and never negative") {
  using namespace std::chrono_literals;
  CHECK(whole_seconds(0ns) == 0);
  CHECK(whole_seconds(999'999'999ns) == 0);
  CHECK(whole_seconds(1s) == 1);
  CHECK(whole_seconds(2s - 1ns) == 1);
  CHECK(whole_seconds(4'294'967'295s) == 4'294'967'295);
  CHECK(whole_seconds(-1ns) == 0);
  CHECK(whole_seconds(-5s) == 0);
}

TEST_CASE("now plus the longest delay is far below kNever") {
  using namespace std::chrono_literals;
  const Time now(1000h);
  CHECK(now + std::chrono::seconds(UINT32_MAX) < kNever);
  CHECK(Time(-1s) < Time());
}

}  // namespace tubed
