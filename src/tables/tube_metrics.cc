#include "tables/tube_metrics.h"

#include <algorithm>
#include <iterator>

#include "tables/job.h"

namespace tubed::engine {

namespace {

// How many records are evicted when a tube is created or removed. At most one was added.
constexpr int kEvictedAtOnce = 2;

}  // namespace

TubeInfo TubeMetrics::tube_info() const {
  return {.name = name,
          .jobs = jobs,
          .total_jobs = put_count,
          .waiting_count = waiting_count,
          .delete_count = delete_count,
          .pause = {},
          .pause_left = {},
          .next_delayed_age = {},
          .first_buried_age = {},
          .oldest_ready_age = {}};
}

double TubeMetrics::mean_processing_seconds() const {
  constexpr std::uint64_t kFewest = 10;
  const std::uint64_t total = reserve_to_delete.total();
  return total < kFewest ? 1 : reserve_to_delete.sum_seconds() / static_cast<double>(total);
}

Duration TubeMetrics::oldest_ready_age(Time now) const {
  if (ready_ages.empty()) return {};
  const AgeSketch::Span& oldest = ready_ages.first();
  // If jobs are taken in the order of their creation, the next job is the oldest.
  const Job* next = tube == nullptr ? nullptr : tube->first(JobState::ready);
  const bool is_oldest = next != nullptr && next->created <= oldest.last;
  return std::max(now - (is_oldest ? next->created : oldest.begin), Duration::zero());
}

TubeMetrics* TubeMetricsRegistry::open(std::string_view name, const Tube* tube,
                                       const Limits& limits, Time now) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) {
    TubeMetrics* metrics = &found->second;
    TUBED_ASSERT(metrics->tube == nullptr);
    const bool over = has_expired(*metrics, limits, now);
    if (!over) {
      retained_.erase(metrics);
      metrics->tube = tube;
      return metrics;
    }
    evict(metrics);
  }
  evict_some(limits, now);
  if (by_name_.size() >= limits.tubes_with_metrics || name == kOverflowName) return &overflow_;
  const auto added = by_name_.try_emplace(std::string(name)).first;
  TubeMetrics* metrics = &added->second;
  metrics->name = added->first;
  metrics->tube = tube;
  in_order_.insert_after(added == by_name_.begin() ? nullptr : &std::prev(added)->second, metrics);
  return metrics;
}

void TubeMetricsRegistry::close(TubeMetrics* metrics, const Limits& limits, Time now) {
  if (metrics == &overflow_) return;
  metrics->tube = nullptr;
  metrics->retained_since = now;
  metrics->ready_ages = {};  // frees its memory
  retained_.push_back(metrics);
  evict_some(limits, now);
}

// Evicts expired records and, if more records exist than a reload permits, the oldest.
void TubeMetricsRegistry::evict_some(const Limits& limits, Time now) {
  for (int i = 0; i < kEvictedAtOnce && !retained_.empty(); ++i) {
    TubeMetrics* oldest = retained_.first();
    if (by_name_.size() <= limits.tubes_with_metrics && !has_expired(*oldest, limits, now)) return;
    evict(oldest);
  }
}

void TubeMetricsRegistry::evict(TubeMetrics* metrics) {
  retained_.erase(metrics);
  in_order_.erase(metrics);
  by_name_.erase(by_name_.find(metrics->name));
}

void TubeMetricsRegistry::check_invariants() const {
  retained_.check_invariants();
  in_order_.check_invariants();
  std::size_t with_tube = 0;
  const TubeMetrics* next = in_order_.first();
  for (const auto& [name, metrics] : by_name_) {
    TUBED_ASSERT(name == metrics.name && name != kOverflowName && next == &metrics);
    next = InOrder::next(next);
    metrics.ready_ages.check_invariants();
    if (metrics.tube != nullptr) ++with_tube;
    if (metrics.tube == nullptr) {
      TUBED_ASSERT(metrics.jobs == StateCounts{} && metrics.ready_ages.empty());
      TUBED_ASSERT(metrics.waiting_count == 0 && metrics.paused_count == 0);
    }
  }
  TUBED_ASSERT(next == nullptr);
  TUBED_ASSERT(with_tube + retained_.size() == by_name_.size());
  TUBED_ASSERT(overflow_.tube == nullptr);
  overflow_.ready_ages.check_invariants();
}

}  // namespace tubed::engine
