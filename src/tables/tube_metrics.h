// TubeMetrics: counters and gauges of one tube for the metrics. TubeMetricsRegistry owns the
// records.
//
// A tube is removed when it is empty, and its counters in stats-tube begin at 0 again when it is
// created again. A metric must not do that, so metrics live longer than tubes:
//
// 1. A tube that is created gets a record of its own if fewer than tubes_with_metrics records
//    exist. Otherwise it shares the overflow record. This does not change during the tube's life,
//    because counters of either would go backwards.
// 2. When the tube is removed, its record is retained for metrics_retention. A tube of the same
//    name that is created in this time continues the record.
// 3. After this time the record has expired. It is evicted when a tube is created or removed, the
//    oldest first, or at once if more records exist than a reload permits.
//
// The registry owns the records, which have stable addresses. It reads no clock. Invariant: a
// record other than the overflow record has one tube or is retained.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/intrusive_list.h"
#include "base/latency_histogram.h"
#include "facts/info.h"
#include "facts/types.h"
#include "tables/age_sketch.h"

namespace tubed::engine {

struct Tube;

struct TubeMetrics {
  std::string_view name;       // its key in the registry
  const Tube* tube = nullptr;  // null: retained, or the overflow record
  // Counters since the record was created.
  std::uint64_t put_count = 0;
  std::uint64_t delete_count = 0;
  std::uint64_t timeout_count = 0;
  std::uint64_t deduplicated_count = 0;  // puts whose unique key a job of the tube had
  std::uint64_t dead_count = 0;          // jobs that were tried as often as they may
  std::uint64_t expired_count = 0;
  std::uint64_t rate_limited_count = 0;  // how often it had given all jobs that its rate allows
  LatencyHistogram put_to_reserve;       // of a job's first reservation
  LatencyHistogram reserve_to_delete;    // by its holder
  // The present state.
  StateCounts jobs;
  std::uint64_t waiting_count = 0;
  std::uint64_t paused_count = 0;
  AgeSketch ready_ages;

  // The same numbers in the form of stats-tube. Numbers without a metric are 0.
  TubeInfo tube_info() const;
  // The age of the ready job that was put first, with the error of AgeSketch; 0 if no job is
  // ready. Exact if the next job is the oldest, as in a tube with one priority.
  Duration oldest_ready_age(Time now) const;

  // The mean time from a reservation to the delete of its job; 1 before it has been measured for 10
  // jobs.
  double mean_processing_seconds() const;

  Time retained_since;  // when the tube was removed
  ListLinks<TubeMetrics> retained_links;
  ListLinks<TubeMetrics> order_links;
};

class TubeMetricsRegistry {
 public:
  // The label of the overflow record. A tube of this name has no record of its own.
  static constexpr std::string_view kOverflowName = "other";

  TubeMetricsRegistry() { overflow_.name = kOverflowName; }

  // The record for a tube that is created. O(log records).
  TubeMetrics* open(std::string_view name, const Tube* tube, const Limits& limits, Time now);
  // The record's tube is removed. Precondition: its gauges are 0. O(1) amortised.
  void close(TubeMetrics* metrics, const Limits& limits, Time now);

  // The sum of all tubes without a record of their own.
  const TubeMetrics& overflow() const { return overflow_; }
  // The number of records, including expired records, without the overflow record.
  std::size_t size() const { return by_name_.size(); }

  // Calls visit(const TubeMetrics&, bool expired) for each record after `name` in the order of
  // names, without the overflow record, until visit() returns false. O(log records + visited).
  template <class Visit>
  void visit_after(std::string_view name, const Limits& limits, Time now, Visit visit) const {
    const auto first = by_name_.upper_bound(name);
    const TubeMetrics* metrics = first == by_name_.end() ? nullptr : &first->second;
    while (metrics != nullptr) {
      const TubeMetrics* next = InOrder::next(metrics);
      // A visit of many records mostly waits for memory: load the next record during this visit.
      if (next != nullptr) prefetch(*next);
      if (!visit(*metrics, has_expired(*metrics, limits, now))) return;
      metrics = next;
    }
  }

  // Walks all records. For tests.
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
  InOrder in_order_;  // by name; a walk of the map would touch more memory
  IntrusiveList<TubeMetrics, &TubeMetrics::retained_links> retained_;  // longest retained first
};

}  // namespace tubed::engine
