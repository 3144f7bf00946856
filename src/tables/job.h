// Job, Tube and Session: the engine's own records. Code outside engine/ does not see them.
//
// The tables of the engine own the records (JobTable, TubeTable, SessionTable). The records point
// at each other; each index or link below names the structure that it belongs to. Invariant: a job
// is in exactly one of its tube's ready heap, its tube's delayed heap, its tube's buried list, or
// its holder's heap and its tube's reserved list, as `state` says; a flushed job is in FlushedJobs.
#pragma once

#include <compare>
#include <memory>
#include <string>
#include <vector>

#include "base/index_set.h"
#include "base/indexed_heap.h"
#include "base/intrusive_list.h"
#include "base/slab_pool.h"
#include "facts/fact.h"
#include "facts/policy.h"
#include "facts/types.h"

namespace tubed::engine {

struct TubeMetrics;
struct Tube;
struct Session;
struct UniqueKey;
struct ConcurrencyKey;
struct Group;

struct Job;

// The limits of a job's life: its tags, the marks of policies, and the time when it expires.
struct LifeRecord : InSlab {
  explicit LifeRecord(Job* owner) : job(owner) {}

  Job* job;
  std::optional<std::uint32_t> max_attempts;  // by tag, as the next two
  std::optional<Seconds> time_to_live;
  std::string dead;
  JobMarks marks;  // its text is `dead_from`
  std::string dead_from;
  Time expires = kNever;
  std::uint32_t expiry_index = kNotInHeap;  // in Expiries

  // Nothing is noted about the job.
  bool empty() const { return !max_attempts && !time_to_live && !marks.any() && expires == kNever; }
};

// The concurrency key of a job.
struct ConcurrencyRecord : InSlab {
  explicit ConcurrencyRecord(Job* owner) : job(owner) {}

  Job* job;
  ConcurrencyKey* key = nullptr;  // in ConcurrencyKeys
  std::uint32_t limit = 1;
  std::uint32_t ready_index = kNotInHeap;  // in ReadyOfKey::jobs
  bool parked = false;                     // ready, and in Tube::parked
};

// The groups of a job.
struct GroupRecord : InSlab {
  explicit GroupRecord(Job* owner) : job(owner) {}

  Job* job;
  Group* group = nullptr;   // that it is a member of, or null
  std::string after;        // the group that it waits for, or empty
  bool after_done = false;  // it was ready
  Group* holder = nullptr;  // the group that holds it
  ListLinks<GroupRecord> held_links;

  // The job is ready, or a client has kicked it.
  void end_waiting() { after_done = !after.empty(); }
};

// The records that only jobs with tags, or in a tube with a policy, have.
struct TagRecord : InSlab {
  UniqueKey* unique = nullptr;        // in UniqueKeys, unless the job is flushed; null: none
  Seconds cooldown;                   // of that key
  std::uint16_t ttr_short_by_ms = 0;  // as JobTags has it
  std::unique_ptr<LifeRecord> life;
  std::unique_ptr<ConcurrencyRecord> concurrency;
  std::unique_ptr<GroupRecord> groups;

  bool empty() const {
    return unique == nullptr && life == nullptr && concurrency == nullptr && groups == nullptr &&
           ttr_short_by_ms == 0;
  }
};

// The part of a job that is needed after its first delay, reservation or bury. Most jobs of a long
// queue have no history.
struct JobHistory : InSlab {
  explicit JobHistory(Job* owner) : job(owner) {}

  Job* job;
  Session* holder = nullptr;  // reserved only
  union {
    Time resting_until = Time();  // rests delayed: the end of the delay
    std::uint64_t bury_order;     // rests buried: its place among the buried
  };
  Time reserved_at;  // reserved only
  Seconds delay;
  JobCounters counters;
  ListLinks<JobHistory> links;  // in the list of its tube's buried or reserved jobs
  std::unique_ptr<TagRecord> tags;
};
static_assert(sizeof(JobHistory) == 80);

struct Job : InSlab {
  JobId id = 0;
  Bytes body;
  Tube* tube = nullptr;
  std::unique_ptr<JobHistory> made_history;  // null until history() creates it
  Time created;
  Time deadline;  // reserved: when its TTR passes; delayed: when it becomes ready
  Priority priority = 0;
  Seconds ttr;  // TagRecord may have its milliseconds
  std::uint32_t heap_index = kNotInHeap;
  JobState state = JobState::ready;
  // As in its last fact; equals `state` unless reserved. `reserved`: the job rests nowhere, see
  // truncated().
  JobState resting_state = JobState::ready;
  std::uint16_t epoch = 0;  // of its tube, when the job came into it

  bool urgent() const { return priority < kUrgentBelow; }
  // A client holds the job, and its tube was truncated. The job is gone durably, and only that
  // client's delete finds it.
  bool truncated() const { return resting_state == JobState::reserved; }
  // It belongs to its tube, and was not flushed with it.
  inline bool in_tube() const;
  // No command finds it, and it is gone durably. Only its memory is still used.
  bool flushed() const { return !in_tube() || truncated(); }

  JobHistory& history() {
    if (made_history == nullptr) made_history = std::make_unique<JobHistory>(this);
    return *made_history;
  }
  // From the history, or the value that a job without a history has.
  Session* holder() const { return made_history == nullptr ? nullptr : made_history->holder; }
  Seconds delay() const { return made_history == nullptr ? Seconds{} : made_history->delay; }
  JobCounters counters() const {
    return made_history == nullptr ? JobCounters{} : made_history->counters;
  }
  // Null: it has neither tags nor marks, and does not expire.
  TagRecord* tags() const { return made_history == nullptr ? nullptr : made_history->tags.get(); }
  LifeRecord* life() const { return tags() == nullptr ? nullptr : tags()->life.get(); }
  ConcurrencyRecord* concurrency() const {
    return tags() == nullptr ? nullptr : tags()->concurrency.get();
  }
  GroupRecord* groups() const { return tags() == nullptr ? nullptr : tags()->groups.get(); }
  // When its TTR ends, if the reservation begins at that time.
  Time end_of_ttr(Time reserved) const {
    const Time end = reserved + ttr;
    if (tags() == nullptr) [[likely]]
      return end;
    return end - std::chrono::milliseconds(tags()->ttr_short_by_ms);
  }
  // It will be ready only after the group that it waits for.
  bool waits_for_group() const {
    const GroupRecord* record = groups();
    return record != nullptr && !record->after.empty() && !record->after_done;
  }
  // It rests delayed, without an end (tables/groups.h).
  bool held() const { return state == JobState::delayed && deadline == kNever; }
  void set_delay(Seconds delay) {
    if (delay.count > 0 || made_history != nullptr) history().delay = delay;
  }
  void set_counters(const JobCounters& counters) {
    if (counters != JobCounters{} || made_history != nullptr) history().counters = counters;
  }
};
static_assert(sizeof(Job) == 64, "one cache line");

// Ready order: priority, then id. A released job gets its old place back.
struct ReadyKey {
  Priority priority = 0;
  JobId id = 0;
  friend auto operator<=>(const ReadyKey&, const ReadyKey&) = default;
};

// Deadline order, ties broken by id.
struct DeadlineKey {
  Time deadline;
  std::uint64_t id = 0;
  friend auto operator<=>(const DeadlineKey&, const DeadlineKey&) = default;
};

using ReadyHeap = IndexedHeap<Job, ReadyKey, &Job::heap_index>;
using JobList = IntrusiveList<JobHistory, &JobHistory::links>;
using DeadlineHeap = IndexedHeap<Job, DeadlineKey, &Job::heap_index>;

using ReadyOfKeyHeap = IndexedHeap<ConcurrencyRecord, ReadyKey, &ConcurrencyRecord::ready_index>;
using ExpiryHeap = IndexedHeap<LifeRecord, DeadlineKey, &LifeRecord::expiry_index>;

// Why a tube gives no jobs although it is not paused.
enum class Withheld : std::uint8_t {
  expiry_late = 1,   // jobs of it have expired and are not yet removed
  max_reserved = 2,  // clients hold as many of its jobs as its policy allows
  rate = 4,          // it has given as many as its policy allows for now
};

// A tube that has a policy.
struct TubeRules {
  explicit TubeRules(Tube* owner) : tube(owner) {}

  Tube* tube;
  Policy policy;
  // The rate as a generic cell rate algorithm: when the tube has given all that it may, if each
  // job takes an equal share of the time. The tube is ahead of it by `count` jobs at most.
  Time rate_used_until = Time::min();
  Time rate_until;                        // withheld for the rate: until then
  std::uint32_t rate_index = kNotInHeap;  // in DeadlineIndex, while it is

  bool is_full(std::size_t jobs) const { return policy.max_jobs > 0 && jobs >= policy.max_jobs; }
};

// One entry of a session's watch list. While the session waits, it is in the tube's waiting list.
struct WatchEntry {
  Tube* tube = nullptr;
  Session* session = nullptr;
  ListLinks<WatchEntry> waiting_links;
  std::uint64_t pass = 0;    // as its session's pass: the tube with the smallest is next
  std::uint32_t weight = 1;  // how often the tube is next, compared with the others
};

// The counters of a tube when TubeActivity read them last.
struct SampledCounters {
  std::uint64_t total_jobs = 0;
  std::uint64_t reserve_count = 0;
  std::uint64_t delete_count = 0;
  float recent = 0;  // see ActiveTube
};

struct Tube {
  std::string name;
  std::uint64_t number = 0;        // order of creation: breaks ties between tubes
  std::uint32_t index = 0;         // dense; reused after the tube is removed
  TubeMetrics* metrics = nullptr;  // its own, or the overflow record
  ReadyHeap ready;                 // those that may be given
  ReadyHeap parked;                // ready, but not exposed (tables/concurrency_keys.h)
  DeadlineHeap delayed;
  JobList buried;
  JobList reserved;                                               // in the order of reservation
  IntrusiveList<WatchEntry, &WatchEntry::waiting_links> waiting;  // in order of arrival
  std::uint32_t urgent_count = 0;
  std::uint32_t held_count = 0;  // of the delayed jobs
  std::uint32_t using_count = 0;
  std::uint32_t watching_count = 0;
  std::uint64_t total_jobs = 0;
  std::uint64_t delete_count = 0;
  std::uint64_t pause_count = 0;
  std::uint64_t reserve_count = 0;
  std::uint64_t timeout_count = 0;
  std::uint64_t bury_count = 0;
  Seconds pause;  // as last set; 0 if not paused
  Time pause_until;
  std::uint32_t delay_index = kNotInHeap;  // in DeadlineIndex, while it has delayed jobs
  std::uint32_t pause_index = kNotInHeap;  // in DeadlineIndex, while it is paused
  std::uint32_t list_index = 0;            // in the list that list-tubes shows
  std::uint32_t unremoved_flushes = 0;     // in FlushedJobs
  std::uint16_t epoch = 0;                 // how often it was flushed
  bool serving = false;                    // in ServeQueue
  bool buried_in_disorder = false;         // only during a replay: see JobMoves::order_buried()
  std::uint8_t withheld = 0;               // bits of Withheld
  std::unique_ptr<TubeRules> rules;        // null: it has no policy
  SampledCounters sampled;

  // The number of its jobs in this state, and the first, or null. Ready jobs are in the order in
  // which they are given, parked jobs last; delayed jobs by time, without held jobs; buried and
  // reserved jobs by arrival there.
  std::size_t count_of(JobState state) const;
  Job* first(JobState state) const;
  bool paused() const { return pause_index != kNotInHeap; }
  bool gives_jobs() const { return !paused() && withheld == 0 && !ready.empty(); }
  bool can_serve() const { return !waiting.empty() && gives_jobs(); }
  bool is_full() const { return rules != nullptr && rules->is_full(job_count()); }
  std::size_t job_count() const {
    return ready.size() + parked.size() + delayed.size() + buried.size() + reserved.size();
  }
  bool wanted() const {
    return using_count > 0 || watching_count > 0 || job_count() > 0 || paused() ||
           (rules != nullptr && rules->policy.keep);
  }
  bool is_withheld(Withheld reason) const {
    return (withheld & static_cast<std::uint8_t>(reason)) != 0;
  }
  void set_withheld(Withheld reason, bool on) {
    const auto bit = static_cast<std::uint8_t>(reason);
    withheld = static_cast<std::uint8_t>(on ? withheld | bit : withheld & ~bit);
  }
};

inline std::size_t Tube::count_of(JobState state) const {
  switch (state) {
    case JobState::ready:
      return ready.size() + parked.size();
    case JobState::delayed:
      return delayed.size() - held_count;
    case JobState::buried:
      return buried.size();
    case JobState::reserved:
      return reserved.size();
  }
  return 0;
}

inline Job* Tube::first(JobState state) const {
  if (state == JobState::ready) return ready.empty() ? parked.first() : ready.first();
  if (state == JobState::delayed) {
    Job* job = delayed.first();
    return job == nullptr || job->held() ? nullptr : job;
  }
  const JobHistory* history = state == JobState::buried ? buried.first() : reserved.first();
  return history == nullptr ? nullptr : history->job;
}

inline bool Job::in_tube() const {
  return epoch == tube->epoch;
}

struct Session {
  SessionId id = 0;
  Tube* used = nullptr;
  std::vector<WatchEntry> watches;
  std::unique_ptr<IndexSet> watched;  // indexes of the tubes of a long watch list; else null
  DeadlineHeap held;                  // its reserved jobs, by the end of their TTR
  bool open = false;
  bool past = false;      // the session of the past (engine/recorded_reservations.h)
  bool producer = false;  // has ever put
  bool worker = false;    // has ever reserved
  bool waiting = false;   // in a reserve, or for the end of a job
  ReserveMode mode = ReserveMode::fifo;
  std::uint64_t pass = 0;     // that the tube had which gave it a job last
  std::uint64_t arrival = 0;  // running number of its current or last wait
  JobId awaited = 0;          // it waits for the end of this job; 0: not, but maybe in a reserve
  ListLinks<Session> awaiting_links;
  Time wait_until = kNever;
  Time hold_until = kNever;               // of the session of the past: when it gives back all jobs
  std::uint32_t ttr_index = kNotInHeap;   // in DeadlineIndex, while it holds jobs
  std::uint32_t wait_index = kNotInHeap;  // in DeadlineIndex, while its wait ends by time

  bool weighted() const { return mode != ReserveMode::fifo; }
  // True if it may act on a reserved job: any session may act for the session of the past.
  bool may_act_on(const Job& job) const { return job.holder() == this || job.holder()->past; }
};

}  // namespace tubed::engine
