// Engine: check_invariants(), which the tests call after every step.
//
// It walks all jobs, tubes and sessions and compares three views of the same queue: each record's
// own state, the structure in which the record is linked, and the counters that the engine updates
// with each change. Each function below checks the invariants that the header of its structure
// states.
#include <map>

#include "engine/engine.h"

namespace tubed::engine {

namespace {

// The result of a full walk over the jobs, compared with the counts that the engine maintains.
struct Census {
  StateCounts states;
  std::uint64_t memory = 0;   // without the overhead of a job
  std::uint64_t unique = 0;   // jobs with a unique key
  std::uint64_t flushed = 0;  // not in the states
};

void check_unique_key(const Job& job, const UniqueKey& key) {
  TUBED_ASSERT(key.id == job.id && !key.has_cooldown());
  TUBED_ASSERT(key.tube->tube == job.tube->name && !key.tube->flushed);
}

// A job that rests where it expires is in the heap of jobs that expire.
void check_life(const Job& job, const LifeRecord& life) {
  TUBED_ASSERT(life.job == &job && !life.empty() && life.marks.dead_from == life.dead_from);
  const bool in_heap = life.expiry_index != kNotInHeap;
  TUBED_ASSERT(!in_heap || life.expires != kNever);
  if (job.flushed() || life.expires == kNever) return;
  TUBED_ASSERT(in_heap || job.state == JobState::reserved || job.state == JobState::buried);
}

Census take_census(const JobTable& jobs, std::uint32_t tag_record_bytes,
                   std::uint32_t life_record_bytes) {
  Census census;
  jobs.for_each([&](const Job& job) {
    census.memory += job.body.size();
    if (job.tags() != nullptr) {
      census.memory += tag_record_bytes;
      TUBED_ASSERT(!job.tags()->empty());
    }
    if (const LifeRecord* life = job.life(); life != nullptr) {
      census.memory += life_record_bytes + life->dead.size() + life->dead_from.size();
      check_life(job, *life);
    }
    if (!job.flushed() && job.tags() != nullptr && job.tags()->unique != nullptr) {
      check_unique_key(job, *job.tags()->unique);
      ++census.unique;
    }
    if (!job.in_tube()) {
      ++census.flushed;
      TUBED_ASSERT(job.holder() == nullptr && !job.truncated());
      return;
    }
    TUBED_ASSERT((job.holder() != nullptr) == (job.state == JobState::reserved));
    TUBED_ASSERT((job.heap_index == kNotInHeap) == (job.state == JobState::buried));
    TUBED_ASSERT(!job.truncated() || job.state == JobState::reserved);
    switch (job.state) {
      case JobState::ready:
        ++census.states.ready;
        if (job.urgent()) ++census.states.urgent;
        break;
      case JobState::delayed:
        ++census.states.delayed;
        if (job.held()) ++census.states.held;
        break;
      case JobState::buried:
        ++census.states.buried;
        break;
      case JobState::reserved:
        ++census.states.reserved;
        break;
    }
  });
  return census;
}

void check_rules(const Tube& tube) {
  const TubeRules* rules = tube.rules.get();
  const std::uint32_t most = rules == nullptr ? 0 : rules->policy.max_reserved;
  TUBED_ASSERT(tube.is_withheld(Withheld::max_reserved) ==
               (most > 0 && tube.reserved.size() >= most));
  const bool rate_is_used = rules != nullptr && rules->rate_index != kNotInHeap;
  TUBED_ASSERT(tube.is_withheld(Withheld::rate) == rate_is_used);
}

void check_tube(const Tube& tube, bool is_default, bool giving) {
  tube.ready.check_invariants();
  tube.parked.check_invariants();
  tube.delayed.check_invariants();
  tube.buried.check_invariants();
  tube.reserved.check_invariants();
  tube.waiting.check_invariants();
  TUBED_ASSERT(is_default || tube.wanted());
  TUBED_ASSERT(!(giving && tube.can_serve()) && !tube.serving);
  TUBED_ASSERT((tube.delay_index != kNotInHeap) == !tube.delayed.empty());
  check_rules(tube);
  std::uint32_t urgent = 0;
  for (const ReadyHeap* heap : {&tube.ready, &tube.parked}) {
    heap->for_each([&](const ReadyKey& key, const Job* job) {
      TUBED_ASSERT(job->tube == &tube && job->state == JobState::ready);
      TUBED_ASSERT(key.priority == job->priority && key.id == job->id);
      const bool parked = job->concurrency() != nullptr && job->concurrency()->parked;
      TUBED_ASSERT(parked == (heap == &tube.parked));
      if (job->urgent()) ++urgent;
    });
  }
  TUBED_ASSERT(urgent == tube.urgent_count);
  std::uint32_t held = 0;
  tube.delayed.for_each([&](const DeadlineKey& key, const Job* job) {
    if (job->held()) ++held;
    TUBED_ASSERT(job->tube == &tube && job->state == JobState::delayed);
    TUBED_ASSERT(key.deadline == job->deadline && key.id == job->id);
  });
  TUBED_ASSERT(held == tube.held_count);
  std::uint64_t order = 0;
  for (const JobHistory* history = tube.buried.first(); history != nullptr;
       history = tube.buried.next(history)) {
    const Job* job = history->job;
    TUBED_ASSERT(job->made_history.get() == history);
    TUBED_ASSERT(job->tube == &tube && job->state == JobState::buried);
    TUBED_ASSERT(history == tube.buried.first() || history->bury_order > order ||
                 tube.buried_in_disorder);
    order = history->bury_order;
  }
  for (const JobHistory* history = tube.reserved.first(); history != nullptr;
       history = JobList::next(history)) {
    const Job* job = history->job;
    TUBED_ASSERT(job->made_history.get() == history);
    TUBED_ASSERT(job->tube == &tube && job->state == JobState::reserved && job->in_tube());
    TUBED_ASSERT(history == tube.reserved.first() ||
                 JobList::previous(history)->reserved_at <= history->reserved_at);
  }
  const WatchEntry* previous = nullptr;
  for (const WatchEntry* watch = tube.waiting.first(); watch != nullptr;
       watch = tube.waiting.next(watch)) {
    TUBED_ASSERT(watch->tube == &tube && watch->session->waiting && watch->session->awaited == 0);
    TUBED_ASSERT(previous == nullptr || previous->session->arrival < watch->session->arrival);
    previous = watch;
  }
}

void check_session(const Session& session, std::uint32_t short_watch_list) {
  session.held.check_invariants();
  session.held.for_each([&](const DeadlineKey& key, const Job* job) {
    TUBED_ASSERT(job->holder() == &session && job->state == JobState::reserved);
    TUBED_ASSERT(key.deadline == job->deadline && key.id == job->id);
  });
  TUBED_ASSERT((session.watched != nullptr) == (session.watches.size() > short_watch_list));
  if (session.watched != nullptr) {
    TUBED_ASSERT(session.watched->count() == session.watches.size());
    for (const WatchEntry& watch : session.watches) {
      TUBED_ASSERT(session.watched->contains(watch.tube->index));
    }
  }
  const bool has_deadlines = (session.open || session.past) && !session.held.empty();
  TUBED_ASSERT((session.ttr_index != kNotInHeap) == has_deadlines);
  TUBED_ASSERT(!session.past || (!session.open && session.watches.empty()));
  TUBED_ASSERT(session.open || !session.waiting);
  TUBED_ASSERT(session.waiting || session.awaited == 0);
  const bool warned_of_ttr = session.awaited == 0 && !session.held.empty();
  const bool ends_by_time = session.waiting && (session.wait_until != kNever || warned_of_ttr);
  TUBED_ASSERT((session.wait_index != kNotInHeap) == ends_by_time);
}

// The gauges of a metrics record, computed from its tubes.
struct TubeTotals {
  StateCounts jobs;
  std::uint64_t waiting = 0;
  std::uint64_t paused = 0;
  friend bool operator==(const TubeTotals&, const TubeTotals&) = default;
};

// The gauges of a record are the sums of its tubes: one tube, or all tubes without a record.
void check_tube_metrics(const TubeTable& tubes, const TubeMetricsRegistry& registry,
                        const FlushedJobs& flushed) {
  registry.check_invariants();
  std::map<const TubeMetrics*, TubeTotals> totals;
  for (const auto& tube : tubes.all()) {
    const TubeMetrics& metrics = *tube->metrics;
    TUBED_ASSERT(&metrics == &registry.overflow() || metrics.tube == tube.get());
    TUBED_ASSERT(&metrics == &registry.overflow() || metrics.name == tube->name);
    TubeTotals& sum = totals[&metrics];
    sum.jobs.urgent += tube->urgent_count;
    sum.jobs.ready += tube->count_of(JobState::ready);
    sum.jobs.reserved += tube->reserved.size();
    sum.jobs.delayed += tube->delayed.size();
    sum.jobs.buried += tube->buried.size();
    sum.jobs.held += tube->held_count;
    sum.waiting += tube->waiting.size();
    sum.paused += tube->paused() ? 1 : 0;
    for (const ReadyHeap* heap : {&tube->ready, &tube->parked}) {
      heap->for_each([&](const ReadyKey&, const Job* job) {
        TUBED_ASSERT(metrics.ready_ages.covers(job->created));
      });
    }
  }
  for (const auto& [metrics, sum] : totals) {
    TUBED_ASSERT(sum == (TubeTotals{metrics->jobs, metrics->waiting_count, metrics->paused_count}));
    std::uint64_t flushed_ready = 0;
    flushed.for_each([&, record = metrics](const FlushedBatch& batch) {
      if (batch.ready_ages == &record->ready_ages) {
        flushed_ready += batch.ready.size() + batch.parked.size();
      }
    });
    TUBED_ASSERT(metrics->ready_ages.count() == sum.jobs.ready + flushed_ready);
  }
}

// Each group against a walk of all jobs.
void check_groups(const JobTable& jobs, const Groups& groups) {
  std::map<const Group*, StateCounts> members;
  std::map<const Group*, std::uint64_t> held;
  jobs.for_each([&](const Job& job) {
    const GroupRecord* record = job.groups();
    if (record == nullptr) return;
    TUBED_ASSERT(record->job == &job);
    if (record->holder != nullptr) ++held[record->holder];
    if (!job.flushed()) {
      TUBED_ASSERT((record->holder != nullptr) == job.held());
      TUBED_ASSERT(job.state != JobState::ready || !job.waits_for_group());
    }
    if (record->group == nullptr) return;
    StateCounts& counts = members[record->group];
    if (job.state == JobState::ready) ++counts.ready;
    if (job.state == JobState::delayed) ++counts.delayed;
    if (job.state == JobState::reserved) ++counts.reserved;
    if (job.state == JobState::buried) ++counts.buried;
  });
  groups.for_each([&](const Group& group, bool complete) {
    group.held.check_invariants();
    TUBED_ASSERT(group.states == members[&group] && group.held.size() == held[&group]);
    TUBED_ASSERT(group.members == group.states.total());
    const bool has_members = group.members > 0;
    TUBED_ASSERT(complete ? !has_members && !group.held.empty()
                          : has_members || (groups.deferred() && !group.held.empty()));
  });
}

// Each key against a walk of all jobs.
void check_concurrency(const JobTable& jobs, const ConcurrencyKeys& keys) {
  std::map<const ConcurrencyKey*, ConcurrencyKey> expected;
  std::map<const ReadyOfKey*, std::size_t> ready_jobs;
  jobs.for_each([&](const Job& job) {
    const ConcurrencyRecord* record = job.concurrency();
    if (record == nullptr) return;
    ConcurrencyKey& key = expected[record->key];
    ++key.jobs;
    ++key.limits[record->limit];
    if (job.state == JobState::reserved) ++key.reserved;
    if (job.state != JobState::ready) return;
    const auto found = record->key->tubes.find({job.tube->number, job.epoch});
    TUBED_ASSERT(found != record->key->tubes.end());
    const ReadyOfKey& ready = found->second;
    TUBED_ASSERT(ready.tube == job.tube && record->job == &job);
    TUBED_ASSERT(record->ready_index != kNotInHeap);
    ++ready_jobs[&ready];
  });
  std::uint64_t reserved_keys = 0;
  std::uint64_t late_keys = 0;
  keys.for_each([&](const ConcurrencyKey& key) {
    const ConcurrencyKey& wanted = expected[&key];
    TUBED_ASSERT(key.jobs > 0 && key.jobs == wanted.jobs && key.reserved == wanted.reserved);
    TUBED_ASSERT(key.limits == wanted.limits);
    TUBED_ASSERT(key.open == key.has_room());
    TUBED_ASSERT(!key.late || !key.open);
    if (key.reserved > 0) ++reserved_keys;
    if (key.late) ++late_keys;
    key.hidden.check_invariants();
    std::size_t hidden = 0;
    for (const auto& [place, ready] : key.tubes) {
      TUBED_ASSERT(!ready.jobs.empty() && ready.jobs.size() == ready_jobs[&ready]);
      if (ready.is_hidden) ++hidden;
      if (ready.epoch != ready.tube->epoch) continue;
      const Job* first = ready.jobs.top()->job;
      ready.jobs.check_invariants();
      TUBED_ASSERT(ready.exposed == (ready.is_hidden ? nullptr : first));
      TUBED_ASSERT(first->concurrency()->parked == (ready.exposed == nullptr));
      TUBED_ASSERT(key.has_room() ? !ready.is_hidden : ready.is_hidden || key.late);
    }
    TUBED_ASSERT(hidden == key.hidden.size());
  });
  TUBED_ASSERT(reserved_keys == keys.reserved_keys());
  TUBED_ASSERT(keys.has_late() == (late_keys > 0));
}

// Returns the number of flushed jobs.
std::uint64_t check_flushed(const FlushedJobs& flushed) {
  std::uint64_t count = 0;
  std::map<const Tube*, std::uint32_t> batches;
  flushed.for_each([&](const FlushedBatch& batch) {
    TUBED_ASSERT(batch.size() > 0 && batch.epoch != batch.tube->epoch);
    batch.ready.check_invariants();
    batch.parked.check_invariants();
    batch.delayed.check_invariants();
    batch.listed.check_invariants();
    count += batch.size();
    ++batches[batch.tube];
  });
  for (const auto& [tube, number] : batches) TUBED_ASSERT(tube->unremoved_flushes == number);
  return count;
}

}  // namespace

void Engine::check_invariants() const {
  TUBED_ASSERT(parts_.serve_queue.empty());
  check_tube_metrics(parts_.tubes, parts_.tube_metrics, parts_.flushed);
  parts_.deadlines.check_invariants();
  parts_.expiries.check_invariants();

  const Census census = take_census(parts_.jobs, TagRecords::kTagBytes, TagRecords::kLifeBytes);
  TUBED_ASSERT(census.states == parts_.moves.counts());
  TUBED_ASSERT(census.flushed == check_flushed(parts_.flushed));
  std::uint64_t in_tubes = 0;
  std::uint64_t watching = 0;
  std::uint64_t users = 0;
  for (const auto& tube : parts_.tubes.all()) {
    check_tube(*tube, tube.get() == parts_.registry.default_tube(), choice_.is_giving());
    TUBED_ASSERT(parts_.tubes.find(tube->name) == tube.get());
    TUBED_ASSERT(parts_.tubes.all()[tube->list_index] == tube);
    TUBED_ASSERT(parts_.tubes.at(tube->index) == tube.get());
    TUBED_ASSERT(parts_.tubes.giving().contains(tube->index) == tube->gives_jobs());
    in_tubes += tube->job_count();
    watching += tube->watching_count;
    users += tube->using_count;
  }
  TUBED_ASSERT(in_tubes + census.flushed == parts_.jobs.size());
  TUBED_ASSERT(watching == parts_.watch_lists.size() && users == parts_.counts.sessions);

  std::size_t giving = 0;
  for (const auto& tube : parts_.tubes.all()) giving += tube->gives_jobs() ? 1 : 0;
  TUBED_ASSERT(parts_.tubes.giving().count() == giving);

  std::uint64_t open = 0;
  std::uint64_t waiting = 0;
  std::uint64_t waiting_for_jobs = 0;
  std::uint64_t held = 0;
  parts_.sessions.for_each([&](const Session& session) {
    check_session(session, parts_.limits.short_watch_list);
    if (session.open) ++open;
    if (session.waiting) ++(session.awaited == 0 ? waiting : waiting_for_jobs);
    held += session.held.size();
  });
  check_session(parts_.sessions.past(), parts_.limits.short_watch_list);
  held += parts_.sessions.past().held.size();
  TUBED_ASSERT(open == parts_.counts.sessions && waiting == dispatcher_.waiting());
  std::uint64_t job_waiters = 0;
  parts_.job_waiters.for_each([&](JobId id, const Session& session) {
    const Job* job = parts_.jobs.find_present(id);
    TUBED_ASSERT(session.awaited == id && job != nullptr && job->state != JobState::buried);
    ++job_waiters;
  });
  TUBED_ASSERT(job_waiters == waiting_for_jobs && job_waiters == parts_.job_waiters.size());
  TUBED_ASSERT(held == census.states.reserved);
  parts_.unique_keys.check_invariants();
  check_concurrency(parts_.jobs, parts_.concurrency_keys);
  check_groups(parts_.jobs, parts_.groups);
  TUBED_ASSERT(census.unique == parts_.unique_keys.keys_of_jobs());
  TUBED_ASSERT(parts_.memory.bytes() >= parts_.jobs.size() * JobMemory::cost_of(0) + census.memory +
                                            parts_.unique_keys.memory());
}

}  // namespace tubed::engine
