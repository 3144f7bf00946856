// AgeSketch: the creation time of the oldest of some jobs, approximately, in constant memory.
//
// It counts jobs by creation time in at most 128 spans of time. Jobs that were created within a
// tenth of a second share a span. If a new span would be one too many, neighbours are merged,
// beginning with those that are narrowest in relation to their age. The oldest job is in first().
// The width of that span, and so the error, is at most a tenth of a second or an eighth of the age,
// whichever is more. If ages from seconds to days are evenly distributed, the error may be a
// quarter of the age.
//
// It owns its spans and reads no clock. Invariant: spans are disjoint, in order, and not empty.
#pragma once

#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "base/time.h"

namespace tubed::engine {

class AgeSketch {
 public:
  static constexpr std::size_t kMaxSpans = 128;
  // Jobs that were created this close together may share a span.
  static constexpr Duration kGrain = std::chrono::milliseconds(100);

  // Jobs that were created from `begin` to `last`, both included. Some job was created at each of
  // the two times; it may have been removed since.
  struct Span {
    Time begin;
    Time last;
    std::uint64_t count = 0;
  };

  bool empty() const { return first_ == spans_.size(); }
  // The span of the oldest job. Precondition: !empty().
  const Span& first() const { return spans_[first_]; }

  // O(1) for the newest job, else O(log spans), and occasionally O(spans) to merge.
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

  // O(1) for a job of the first span, else O(log spans), and O(spans) if its span becomes empty.
  // Precondition: a job with this creation time was added and not removed.
  void remove(Time created) {
    TUBED_ASSERT(!empty());
    Span& oldest = spans_[first_];
    if (created > oldest.last) return remove_elsewhere(created);
    if (--oldest.count == 0) drop_first();
  }

  // The number of jobs, and of spans.
  std::uint64_t count() const;
  std::size_t span_count() const { return spans_.size() - first_; }
  // True if a span includes this time. For tests.
  bool covers(Time created) const;

  // Walks all spans. For tests.
  void check_invariants() const;

 private:
  // The capacity that an empty sketch keeps: a queue of one job does not allocate for each job.
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
  std::size_t first_ = 0;  // the index of first(); spans before it were removed
};

}  // namespace tubed::engine
