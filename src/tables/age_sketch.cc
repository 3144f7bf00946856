#include "tables/age_sketch.h"

#include <algorithm>
#include <array>

namespace tubed::engine {

namespace {

// make_room() merges spans up to a width of one sixteenth of their age and, while too many spans
// are left, tries wider spans. A half is always enough: each pair of spans then has at most half
// the age of the pair before.
constexpr std::array<std::int64_t, 6> kNarrowness = {16, 11, 8, 6, 4, 2};

// make_room() leaves at most this many spans, so it is not called for each new span.
constexpr std::size_t kSpansLeft = AgeSketch::kMaxSpans - AgeSketch::kMaxSpans / 8;

}  // namespace

// The index of the first span that begins after `created`.
std::size_t AgeSketch::first_after(Time created) const {
  const auto from = spans_.begin() + static_cast<std::ptrdiff_t>(first_);
  const auto found = std::upper_bound(
      from, spans_.end(), created, [](Time time, const Span& span) { return time < span.begin; });
  return static_cast<std::size_t>(found - spans_.begin());
}

void AgeSketch::add_elsewhere(Time created) {
  if (span_count() == kMaxSpans) make_room();
  const std::size_t next = first_after(created);
  if (next > first_) {
    Span& before = spans_[next - 1];
    if (created <= before.last || created - before.begin <= kGrain) {
      before.last = std::max(before.last, created);
      ++before.count;
      return;
    }
  }
  if (next < spans_.size() && spans_[next].last - created <= kGrain) {
    spans_[next].begin = created;
    ++spans_[next].count;
    return;
  }
  insert(next, created);
}

void AgeSketch::insert(std::size_t place, Time created) {
  const Span span{.begin = created, .last = created, .count = 1};
  if (place == first_ && first_ > 0) {
    spans_[--first_] = span;
  } else {
    spans_.insert(spans_.begin() + static_cast<std::ptrdiff_t>(place), span);
  }
}

void AgeSketch::remove_elsewhere(Time created) {
  const std::size_t place = first_after(created) - 1;
  TUBED_ASSERT(place > first_ && place < spans_.size() && created <= spans_[place].last);
  if (--spans_[place].count > 0) return;
  spans_.erase(spans_.begin() + static_cast<std::ptrdiff_t>(place));
}

void AgeSketch::drop_first() {
  ++first_;
  if (2 * first_ >= spans_.size()) close_gap();
}

// Removes the unused spans at the front. O(1) for each of them.
void AgeSketch::close_gap() {
  if (empty() && spans_.capacity() > kKeptSpans) {
    std::vector<Span>().swap(spans_);
  } else {
    spans_.erase(spans_.begin(), spans_.begin() + static_cast<std::ptrdiff_t>(first_));
  }
  first_ = 0;
}

void AgeSketch::make_room() {
  close_gap();
  for (const std::int64_t narrowness : kNarrowness) {
    if (merge(narrowness, kSpansLeft)) return;
  }
}

// Merges neighbours, oldest first, while the result is at most one `narrowness`th of its age wide.
// Ages are counted up to the newest job. Up to now they are greater, so the real error is smaller.
// True if at most `enough` spans are left.
bool AgeSketch::merge(std::int64_t narrowness, std::size_t enough) {
  const Time newest = spans_.back().last;
  std::size_t kept = 0;
  for (std::size_t i = 1; i < spans_.size(); ++i) {
    Span& span = spans_[kept];
    if (spans_[i].last - span.begin <= (newest - span.begin) / narrowness) {
      span.last = spans_[i].last;
      span.count += spans_[i].count;
    } else {
      spans_[++kept] = spans_[i];
    }
  }
  spans_.resize(kept + 1);
  return spans_.size() <= enough;
}

std::uint64_t AgeSketch::count() const {
  std::uint64_t count = 0;
  for (std::size_t i = first_; i < spans_.size(); ++i) count += spans_[i].count;
  return count;
}

bool AgeSketch::covers(Time created) const {
  const std::size_t next = first_after(created);
  return next > first_ && created <= spans_[next - 1].last;
}

void AgeSketch::check_invariants() const {
  TUBED_ASSERT(first_ <= spans_.size() && span_count() <= kMaxSpans);
  for (std::size_t i = first_; i < spans_.size(); ++i) {
    TUBED_ASSERT(spans_[i].count > 0 && spans_[i].begin <= spans_[i].last);
    TUBED_ASSERT(i == first_ || spans_[i - 1].last < spans_[i].begin);
  }
}

}  // namespace tubed::engine
