#include "engine/tube_info.h"

#include <algorithm>

#include "tables/concurrency_keys.h"
#include "tables/tube_metrics.h"

namespace tubed::engine {

Duration age_of(const Job* job, Time now) {
  return job == nullptr ? Duration{} : std::max(now - job->created, Duration::zero());
}

namespace {

// The ready job that the tube gives next, in a tube that stays as it is: Tube::first() does not
// know that keys may be late. Null: none. O(log n), or O(b log b) with b jobs of late keys before
// it.
const Job* first_ready(const Tube& tube) {
  const Job* first = tube.first(JobState::ready);
  if (first == nullptr || !is_blocked(*first)) return first;
  const Job* open = nullptr;
  std::size_t wanted = 1;
  for (std::size_t seen = wanted; open == nullptr && seen == wanted;) {
    wanted *= 2;
    seen = 0;
    tube.ready.visit_smallest(wanted, [&](const Job* job) {
      ++seen;
      if (open == nullptr && !is_blocked(*job)) open = job;
    });
  }
  if (open != nullptr) return open;
  const Job* parked = tube.parked.first();
  const auto key = [](const Job& job) { return ReadyKey{job.priority, job.id}; };
  return parked == nullptr || key(*first) < key(*parked) ? first : parked;
}

}  // namespace

TubeInfo info_of(const Tube& tube, Time now) {
  const Job* next_ready = first_ready(tube);
  TubeInfo info{.name = tube.name,
                .jobs = {.urgent = tube.urgent_count,
                         .ready = tube.count_of(JobState::ready),
                         .reserved = tube.reserved.size(),
                         .delayed = tube.delayed.size(),
                         .buried = tube.buried.size(),
                         .held = tube.held_count},
                .total_jobs = tube.total_jobs,
                .using_count = tube.using_count,
                .watching_count = tube.watching_count,
                .waiting_count = tube.waiting.size(),
                .delete_count = tube.delete_count,
                .pause_count = tube.pause_count,
                .pause = tube.pause,
                .pause_left = {},
                .reserve_count = tube.reserve_count,
                .timeout_count = tube.timeout_count,
                .bury_count = tube.bury_count,
                .next_ready_id = next_ready == nullptr ? 0 : next_ready->id,
                .next_delayed_age = age_of(tube.first(JobState::delayed), now),
                .first_buried_age = age_of(tube.first(JobState::buried), now),
                .oldest_ready_age = age_of(next_ready, now)};
  if (tube.paused()) info.pause_left = std::max(tube.pause_until - now, Duration::zero());
  if (const TubeMetrics& metrics = *tube.metrics; metrics.tube == &tube) {
    info.oldest_ready_age = metrics.oldest_ready_age(now);
    info.put_to_reserve = &metrics.put_to_reserve;
    info.reserve_to_delete = &metrics.reserve_to_delete;
  }
  return info;
}

}  // namespace tubed::engine
