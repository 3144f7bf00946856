// AgeSketch: since when the oldest of some ready jobs has been there, without a byte a job.
//
// Jobs are counted by when they were created, in at most 128 spans of time. Jobs of one tenth of a
// second share a span; when there are too many, neighbours become one, those first that are
// narrowest beside their age. So what first() tells is at most a tenth of a second wider than the
// truth, or an eighth of the age, or where ages from seconds to days lie evenly side by side a
// quarter.
//
// It reads no clock. Invariant: spans are disjoint, in order, and none is empty.
#pragma once

#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "base/time.h"

namespace tubed::engine {

class AgeSketch {
 public:
  static constexpr std::size_t kMaxSpans = 128;
  // Within so much no difference is made.
  static constexpr Duration kGrain = std::chrono::milliseconds(100);

  // Jobs that were created from `begin` to `last`, both included and each one true of a job that is
  // there or was.
  struct Span {
    Time begin;
    Time last;
    std::uint64_t count = 0;
  };

  bool empty() const { return first_ == spans_.size(); }
  // Where the oldest job is. Precondition: !empty().
  const Span& first() const { return spans_[first_]; }

  // O(1) for the newest job, O(log spans) for another; what makes room is O(spans), now and then.
  void add(Time created) {
    if (!empty()) {
      Span& newest = spans_.back();
      if (created >= newest.last && created - newest.begin <= kGrain) {
        newest.last = created;
        ++newest.count;
        return;
      }
    }
    add_elsewhere(created);
  }

  // O(1) for one of the oldest, O(log spans) for another, O(spans) if its span becomes empty.
  // Precondition: one that was created then has entered.
  void remove(Time created) {
    TUBED_ASSERT(!empty());
    Span& oldest = spans_[first_];
    if (created > oldest.last) return remove_elsewhere(created);
    if (--oldest.count == 0) drop_first();
  }

  // How many are there in all, and how many spans.
  std::uint64_t count() const;
  std::size_t span_count() const { return spans_.size() - first_; }
  // Whoever entered with this stands in one span.
  bool covers(Time created) const;

  // Walks everything.
  void check_invariants() const;

 private:
  // What an empty one keeps, so that a queue of one job takes no memory anew for each.
  static constexpr std::size_t kKeptSpans = 8;

  void add_elsewhere(Time created);
  void remove_elsewhere(Time created);
  std::size_t first_after(Time created) const;
  void insert(std::size_t place, Time created);
  void drop_first();
  void close_gap();
  void make_room();
  bool merge(std::int64_t narrowness, std::size_t enough);

  std::vector<Span> spans_;
  std::size_t first_ = 0;  // before it are spans that have gone
};

}  // namespace tubed::engine
