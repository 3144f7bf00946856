// TubeMetrics: what is counted of a tube for those who look from afar, and outlives the tube;
// TubeMetricsRegistry: all of them.
//
// A tube that begins gets a tally of its own as long as there is a place, and else shares the one
// of all others: that is decided then and stays. When it vanishes its tally lingers, and a tube of
// the same name goes on with it, so that its counters never go back; when nobody came it is
// forgotten, as soon as its place is wanted. Time is told.
//
// The book owns the tallies, which stay where they are. Invariant: a named tally has one tube, or
// lingers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/histogram.h"
#include "base/intrusive_list.h"
#include "engine/age_sketch.h"
#include "engine/info.h"
#include "engine/types.h"

namespace tubed::engine {

struct Tube;

struct TubeMetrics {
  std::string_view name;       // its key in the book
  const Tube* tube = nullptr;  // null: it lingers, or is that of all others
  // Counted since it began.
  std::uint64_t put_count = 0;
  std::uint64_t delete_count = 0;
  std::uint64_t timeout_count = 0;
  LongTimes put_to_reserve;     // a job's first reservation
  LongTimes reserve_to_delete;  // by its holder
  // As it is now.
  StateCounts jobs;
  std::uint64_t waiting_count = 0;
  std::uint64_t paused_count = 0;
  AgeSketch ready_ages;

  // These and the counters as stats-tube tells them of a tube; what is not tallied is 0.
  TubeInfo tube_info() const;
  // Of the job that was put first, within what ready_ages promises; 0 if none is ready.
  Duration oldest_ready_age(Time now) const;

  Time retained_since;  // lingering: since when
  ListLinks<TubeMetrics> retained_links;
  ListLinks<TubeMetrics> order_links;
};

class TubeMetricsRegistry {
 public:
  // The name under which the others are summed up. A tube of this name never has its own.
  static constexpr std::string_view kOverflowName = "other";

  TubeMetricsRegistry() { overflow_.name = kOverflowName; }

  // The tally of a tube that begins. O(log tallies).
  TubeMetrics* open(std::string_view name, const Tube* tube, const Limits& limits, Time now);
  // Its tube has gone. O(1) amortised. Precondition: it tells of no job, no wait and no pause.
  void close(TubeMetrics* metrics, const Limits& limits, Time now);

  // What became of all tubes that have none of their own.
  const TubeMetrics& overflow() const { return overflow_; }
  // Named ones, those included that are about to be forgotten.
  std::size_t size() const { return by_name_.size(); }

  // Calls visit(const TubeMetrics&, bool over) for each named tally behind `name` in the order of
  // their names, until visit() returns false; `over`: its time is, it is about to be forgotten.
  // O(log tallies + visited).
  template <class Visit>
  void visit_after(std::string_view name, const Limits& limits, Time now, Visit visit) const {
    const auto first = by_name_.upper_bound(name);
    const TubeMetrics* metrics = first == by_name_.end() ? nullptr : &first->second;
    while (metrics != nullptr) {
      const TubeMetrics* next = InOrder::next(metrics);
      // While this one is looked at: who looks at many waits for memory more than for all else.
      if (next != nullptr) prefetch(*next);
      if (!visit(*metrics, has_expired(*metrics, limits, now))) return;
      metrics = next;
    }
  }

  // Walks everything.
  void check_invariants() const;

 private:
  using InOrder = IntrusiveList<TubeMetrics, &TubeMetrics::order_links>;

  static void prefetch(const TubeMetrics& metrics) {
    constexpr std::size_t kLine = 64;
    const auto* bytes = reinterpret_cast<const char*>(&metrics);
    for (std::size_t at = 0; at < sizeof metrics; at += kLine) __builtin_prefetch(bytes + at);
  }
  static bool has_expired(const TubeMetrics& metrics, const Limits& limits, Time now) {
    return metrics.tube == nullptr && now - metrics.retained_since >= limits.metrics_retention;
  }
  void evict_some(const Limits& limits, Time now);
  void evict(TubeMetrics* metrics);

  TubeMetrics overflow_;
  std::map<std::string, TubeMetrics, std::less<>> by_name_;
  InOrder in_order_;  // of their names: to walk the map would touch more memory
  IntrusiveList<TubeMetrics, &TubeMetrics::retained_links> retained_;  // the oldest first
};

}  // namespace tubed::engine
