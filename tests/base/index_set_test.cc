#include "base/index_set.h"

#include <set>
#include <vector>

#include <doctest/doctest.h>

namespace tubed {

namespace {

std::vector<std::uint32_t> common(const IndexSet& one, const IndexSet& other) {
  std::vector<std::uint32_t> all;
  IndexSet::for_each_common(one, other, [&](std::uint32_t index) { all.push_back(index); });
  return all;
}

}  // namespace

TEST_CASE("a number is in the set from insert to erase, whatever its neighbours") {
  IndexSet set;
  for (const std::uint32_t index : {0U, 63U, 64U, 4095U, 4096U, 100'000U}) {
    CAPTURE(index);
    CHECK_FALSE(set.contains(index));
    set.erase(index);
    set.insert(index);
    CHECK(set.contains(index));
    CHECK_FALSE(set.contains(index + 1));
  }
  set.set(64, false);
  CHECK_FALSE(set.contains(64));
  CHECK(set.contains(63));
  set.set(64, true);
  CHECK(set.contains(64));
}

TEST_CASE("two sets have the same intersection as two std::sets, in ascending order") {
  IndexSet one;
  IndexSet other;
  std::set<std::uint32_t> plain_one;
  std::set<std::uint32_t> plain_other;
  std::uint32_t state = 7;
  const auto next = [&state](std::uint32_t bound) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % bound;
  };
  for (int step = 0; step < 20'000; ++step) {
    const std::uint32_t index = next(2) == 0 ? next(20'000) : next(200);
    const bool wanted = next(3) > 0;
    const bool first = next(2) == 0;
    (first ? one : other).set(index, wanted);
    std::set<std::uint32_t>& plain = first ? plain_one : plain_other;
    if (wanted) {
      plain.insert(index);
    } else {
      plain.erase(index);
    }
    if (step % 500 != 0) continue;
    std::vector<std::uint32_t> wanted_common;
    for (const std::uint32_t each : plain_one) {
      if (plain_other.contains(each)) wanted_common.push_back(each);
    }
    CHECK(common(one, other) == wanted_common);
    CHECK(common(other, one) == wanted_common);
    CHECK(one.count() == plain_one.size());
  }
  CHECK(common(one, IndexSet()).empty());
}

}  // namespace tubed
