// AgeSketch compared with a multiset of all creation times.
#include "tables/age_sketch.h"

#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

namespace tubed::engine {

namespace {

using namespace std::chrono_literals;

constexpr Time kBegin{std::chrono::hours(1000)};

// A sketch and a multiset with the same jobs.
struct Both {
  void add(Time created) {
    ages.add(created);
    naive.insert(created);
  }
  void remove(std::multiset<Time>::iterator who) {
    ages.remove(*who);
    naive.erase(who);
  }
  // The oldest is in the first span, and that is not wider than promised: seen at `now` the begin
  // of the span is one `narrowness`th of the age too old at most.
  void check(Time now, std::int64_t narrowness) const {
    ages.check_invariants();
    REQUIRE(ages.count() == naive.size());
    REQUIRE(ages.empty() == naive.empty());
    if (naive.empty()) return;
    const AgeSketch::Span& first = ages.first();
    REQUIRE(first.begin <= *naive.begin());
    REQUIRE(*naive.begin() <= first.last);
    const Duration reported = now - first.begin;
    const Duration most = std::max<Duration>(AgeSketch::kGrain, reported / narrowness);
    REQUIRE(now - *naive.begin() >= reported - most);
  }

  AgeSketch ages;
  std::multiset<Time> naive;
};

}  // namespace

TEST_CASE("a queue that is taken from in order") {
  Both both;
  Time now = kBegin;
  for (int i = 0; i < 3000; ++i) {
    now += 70ms;
    both.add(now);
    if (i >= 900) both.remove(both.naive.begin());
    both.check(now, 8);
  }
  while (!both.naive.empty()) {
    both.remove(both.naive.begin());
    both.check(now, 8);
  }
}

TEST_CASE("a queue that is taken from at random, and gets old jobs back") {
  std::mt19937_64 random(7);
  for (int life = 0; life < 20; ++life) {
    Both both;
    Time now = kBegin;
    std::vector<Time> held;
    for (int i = 0; i < 4000; ++i) {
      now += std::chrono::milliseconds(random() % 500);
      both.add(now);
      if (random() % 2 == 0) {
        const auto who = std::next(both.naive.begin(),
                                   static_cast<std::ptrdiff_t>(random() % both.naive.size()));
        held.push_back(*who);
        both.remove(who);
      }
      if (!held.empty() && random() % 3 == 0) {
        const std::size_t which = random() % held.size();
        both.add(held[which]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      }
      both.check(now, 8);
    }
  }
}

TEST_CASE("ages from seconds to days side by side, and one leaves after the other") {
  Both both;
  for (Duration age = 1s; age < 24h * 30; age += age / 40) both.add(kBegin - age);
  CHECK(both.ages.span_count() <= AgeSketch::kMaxSpans);
  while (!both.naive.empty()) {
    both.check(kBegin, 4);
    both.remove(both.naive.begin());
  }
}

TEST_CASE("jobs of one moment share a span") {
  AgeSketch ages;
  for (int i = 0; i < 1000; ++i) ages.add(kBegin + i * 100us);
  CHECK(ages.span_count() == 1);
  ages.add(kBegin + 200ms);
  CHECK(ages.span_count() == 2);
  CHECK(ages.count() == 1001);
  CHECK(ages.covers(kBegin + 50ms));
  CHECK_FALSE(ages.covers(kBegin + 150ms));
}

}  // namespace tubed::engine
