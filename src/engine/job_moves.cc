#include "engine/job_moves.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/planted.h"
#include "tables/tube_metrics.h"

namespace tubed::engine {

// Counts a job in its state: in the engine, the tube and the tube's metrics. `kBy`: 1 after the job
// has entered the state, -1 before it leaves it.
template <JobState kState, int kBy>
[[gnu::always_inline]] inline void JobMoves::count_state(const Job& job) {
  Tube& tube = *job.tube;
  TubeMetrics& metrics = *tube.metrics;
  const auto count = [&](std::uint64_t StateCounts::*state) {
    counts_.*state += static_cast<std::uint64_t>(kBy);
    metrics.jobs.*state += static_cast<std::uint64_t>(kBy);
  };
  if (extended_ && job.tags() != nullptr) [[unlikely]]
    Groups::count(job, kState, kBy > 0);
  if constexpr (kState == JobState::delayed) {
    count(&StateCounts::delayed);
    if (job.deadline == kNever) [[unlikely]] {
      count(&StateCounts::held);
      tube.held_count += static_cast<std::uint32_t>(kBy);
    }
  }
  if constexpr (kState == JobState::buried) count(&StateCounts::buried);
  if constexpr (kState == JobState::reserved) count(&StateCounts::reserved);
  if constexpr (kState == JobState::ready) {
    count(&StateCounts::ready);
    if constexpr (kBy > 0) metrics.ready_ages.add(job.created);
    if constexpr (kBy < 0) metrics.ready_ages.remove(job.created);
    if (!job.urgent()) return;
    count(&StateCounts::urgent);
    tube.urgent_count += static_cast<std::uint32_t>(kBy);
  }
}

void JobMoves::detach(Job* job) {
  Tube* tube = job->tube;
  switch (job->state) {
    case JobState::ready:
      count_state<JobState::ready, -1>(*job);
      if (extended_ && job->concurrency() != nullptr) [[unlikely]] {
        concurrency_keys_.erase_ready(*job);
      } else {
        tube->ready.erase(job);
      }
      tubes_.update_giving(tube);
      break;
    case JobState::delayed:
      count_state<JobState::delayed, -1>(*job);
      tube->delayed.erase(job);
      if (extended_ && job->groups() != nullptr) [[unlikely]]
        groups_.unhold(*job);
      deadlines_.update_delay(tube);
      break;
    case JobState::buried:
      count_state<JobState::buried, -1>(*job);
      tube->buried.erase(&job->history());
      break;
    case JobState::reserved: {
      count_state<JobState::reserved, -1>(*job);
      JobHistory& history = *job->made_history;
      Session* holder = std::exchange(history.holder, nullptr);
      holder->held.erase(job);
      tube->reserved.erase(&history);
      deadlines_.update(*holder);
      if (extended_) [[unlikely]] {
        if (tube->rules != nullptr) reservation_limits_.recount(tube);
        if (job->concurrency() != nullptr) concurrency_keys_.end_reservation(*job);
      }
      break;
    }
  }
}

void JobMoves::attach_ready_with_tags(Job* job) {
  if (job->groups() != nullptr) job->groups()->end_waiting();
  if (job->concurrency() != nullptr) return concurrency_keys_.add_ready(*job);
  job->tube->ready.push({job->priority, job->id}, job);
}

void JobMoves::attach_ready(Job* job) {
  Tube* tube = job->tube;
  job->state = job->resting_state = JobState::ready;
  if (extended_ && job->tags() != nullptr) [[unlikely]] {
    attach_ready_with_tags(job);
  } else {
    tube->ready.push({job->priority, job->id}, job);
  }
  tubes_.update_giving(tube);
  count_state<JobState::ready, 1>(*job);
}

void JobMoves::attach_delayed(Job* job, Time until) {
  job->state = job->resting_state = JobState::delayed;
  job->deadline = job->history().resting_until = until;
  job->tube->delayed.push({until, job->id}, job);
  count_state<JobState::delayed, 1>(*job);
  deadlines_.update_delay(job->tube);
}

void JobMoves::attach_held(Job* job) {
  attach_delayed(job, kNever);
  groups_.hold(*job);
}

void JobMoves::wait_for_group(Job* job) {
  GroupRecord* record = job->groups();
  if (record == nullptr || record->after.empty() || job->state != JobState::ready) return;
  record->after_done = false;
  if (groups_.must_hold(*job)) {
    detach(job);
    attach_held(job);
  } else {
    record->after_done = true;
  }
}

void JobMoves::attach_buried(Job* job, std::uint64_t order) {
  auto& buried = job->tube->buried;
  job->state = job->resting_state = JobState::buried;
  JobHistory& history = job->history();
  history.bury_order = order;
  next_bury_order_ = std::max(next_bury_order_, order + 1);
  JobHistory* before = buried.last();
  if (TUBED_PLANTED(buried_place_is_searched)) {
    for (; before != nullptr && before->bury_order > order; ++entries_walked_)
      before = buried.previous(before);
  }
  // Only a replay of a compacted log buries out of order.
  if (before != nullptr && before->bury_order > order)
    buried_in_disorder_ = job->tube->buried_in_disorder = true;
  buried.insert_after(before, &history);
  count_state<JobState::buried, 1>(*job);
}

[[gnu::always_inline]] inline void JobMoves::link_reserved(Session& holder, Time now, Job* job,
                                                           Time deadline) {
  job->state = JobState::reserved;
  JobHistory& history = job->history();
  history.holder = &holder;
  history.reserved_at = now;
  ++history.counters.reserves;
  job->deadline = deadline;
  holder.held.push({deadline, job->id}, job);
  job->tube->reserved.push_back(&history);
  count_state<JobState::reserved, 1>(*job);
  deadlines_.update(holder);
}

void JobMoves::attach_reserved(Session& holder, Time now, Job* job) {
  const Duration early = std::chrono::milliseconds(TUBED_PLANTED(ttr_ends_a_tick_early) ? 1 : 0);
  link_reserved(holder, now, job, job->end_of_ttr(now) - early);
  // The wall clock may have been set back since a job from the journal was put.
  const Duration age = std::max(now - job->created, Duration::zero());
  const bool is_first = job->made_history->counters.reserves == 1;
  if (is_first) job->tube->metrics->put_to_reserve.add(age);
  ++job->tube->reserve_count;
  if (extended_) [[unlikely]] {
    if (job->tube->rules != nullptr) reservation_limits_.count(now, job->tube);
    if (job->concurrency() != nullptr) concurrency_keys_.begin_reservation(*job);
  }
}

void JobMoves::attach_to_past(Session& past, Time now, Job* job, Time until) {
  link_reserved(past, now, job, until);
  if (job->tube->rules != nullptr) reservation_limits_.recount(job->tube);
  if (job->concurrency() != nullptr) concurrency_keys_.begin_reservation(*job);
}

bool JobMoves::enter_tube(Time now, Job& job, Tube* to, FactSink& out) {
  const bool keeps_key = job.tube != to && unique_keys_.move(now, job, to->name, out);
  job.tube = to;
  job.epoch = to->epoch;
  return keeps_key;
}

void JobMoves::make_ready(Job* job) {
  detach(job);
  attach_ready(job);
  serve_queue_.push(job->tube);
}

void JobMoves::end_delay_of_waiting(Job* job) {
  detach(job);
  if (groups_.must_hold(*job)) {
    attach_held(job);
  } else {
    attach_ready(job);
    serve_queue_.push(job->tube);
  }
}

void JobMoves::order_buried() {
  if (!std::exchange(buried_in_disorder_, false)) return;
  std::vector<std::pair<std::uint64_t, JobHistory*>> jobs;  // with their places
  for (const auto& tube : tubes_.all()) {
    if (!std::exchange(tube->buried_in_disorder, false)) continue;
    JobList& buried = tube->buried;
    jobs.clear();
    while (JobHistory* first = buried.first()) {
      jobs.emplace_back(first->bury_order, first);
      buried.erase(first);
    }
    std::ranges::stable_sort(jobs, [this](const auto& one, const auto& other) {
      ++entries_walked_;
      return one.first < other.first;
    });
    for (const auto& [place, job] : jobs) buried.push_back(job);
  }
}

FlushedBatch JobMoves::take_jobs_at_rest(Tube* tube) {
  TubeMetrics& metrics = *tube->metrics;
  FlushedBatch batch{.tube = tube,
                     .epoch = tube->epoch,
                     .ready = std::exchange(tube->ready, {}),
                     .parked = std::exchange(tube->parked, {}),
                     .delayed = std::exchange(tube->delayed, {}),
                     .listed = std::exchange(tube->buried, {})};
  for (StateCounts* counts : {&counts_, &metrics.jobs}) {
    counts->held -= tube->held_count;
    counts->ready -= batch.ready.size() + batch.parked.size();
    counts->urgent -= tube->urgent_count;
    counts->delayed -= batch.delayed.size();
    counts->buried -= batch.listed.size();
  }
  tube->held_count = 0;
  tube->urgent_count = 0;
  if (metrics.tube == tube) {
    metrics.ready_ages = AgeSketch();
  } else {
    batch.ready_ages = &metrics.ready_ages;  // it has the jobs of other tubes as well
  }
  tubes_.update_giving(tube);
  deadlines_.update_delay(tube);
  return batch;
}

FlushedBatch JobMoves::take_all_jobs(Tube* tube) {
  JobList held;
  while (!tube->reserved.empty()) {
    Job* job = tube->reserved.first()->job;
    detach(job);
    job->state = job->resting_state = JobState::buried;
    if (job->tags() != nullptr) Groups::count(*job, JobState::buried, true);
    held.push_back(&job->history());
  }
  FlushedBatch batch = take_jobs_at_rest(tube);
  while (JobHistory* history = held.first()) {
    held.erase(history);
    batch.listed.push_back(history);
  }
  return batch;
}

}  // namespace tubed::engine
