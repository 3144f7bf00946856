// Model: the rules of the queue in their simplest form, to compare the engine with. It has vectors
// and linear scans, and stores nothing that it can count. It shares no code with the engine but the
// types (ids, facts, notices, results, and the structs of stats).
//
// The durable state of a job is the content of the last fact about it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/engine.h"
#include "facts/output.h"
#include "facts/types.h"

namespace tubed::engine {

class Model {
 public:
  // Of one tube and state.
  struct Slices {
    std::string tube;
    std::uint64_t tube_number = 0;
    JobState state = JobState::ready;
    std::uint64_t left = 0;
  };
  struct Deadlines {
    Time delay = kNever;
    Time ttr = kNever;
    Time pause = kNever;
    bool closing = false;
  };
  struct Job {
    JobId id = 0;
    std::string tube;
    Bytes body;
    Priority priority = 0;
    TimeSpan delay;
    Seconds ttr;
    std::uint16_t ttr_short_by_ms = 0;
    Time created;
    JobCounters counters;
    JobState state = JobState::ready;
    SessionId holder = 0;             // reserved only
    Time deadline;                    // reserved or delayed only
    std::uint64_t bury_order = 0;     // buried only
    std::uint64_t reserve_order = 0;  // reserved only
    bool truncated = false;           // only its holder can delete it
    std::string key;                  // idp; empty: none
    Seconds cooldown;                 // of the key
    std::optional<std::uint32_t> max_attempts;
    std::optional<Seconds> time_to_live;
    std::string dead;
    std::string concurrency_key;  // con; empty: none
    std::uint32_t concurrency_limit = 1;
    std::string group;  // grp; empty: none
    std::string after;  // aft; empty: none
    bool after_done = false;
    std::uint64_t hold_order = 0;
    bool told_after_done = false;
    JobMarks marks;  // without its text, which is `dead_from`
    std::string dead_from;
    Time expires = kNever;
    bool will_expire = false;  // that is not yet due
    Placement told_place;      // by the last fact about it, as are the next
    JobCounters told_counters;
    JobMarks told_marks;
    std::string told_dead_from;

    bool has_life() const {
      return max_attempts || time_to_live || marks.any() || expires != kNever;
    }
    bool has_groups() const { return !group.empty() || !after.empty(); }
    bool has_tags() const {
      return !key.empty() || !concurrency_key.empty() || has_groups() || has_life() ||
             ttr_short_by_ms > 0;
    }
    Duration time_to_run() const {
      return std::chrono::milliseconds(1000 * std::int64_t{ttr.count} - ttr_short_by_ms);
    }
    bool waits() const { return !after.empty() && !after_done; }
    bool held() const { return state == JobState::delayed && deadline == kNever; }
    JobTags tags() const {
      return {key,          cooldown,        max_attempts,      dead,
              time_to_live, concurrency_key, concurrency_limit, group,
              after,        ttr_short_by_ms};
    }
    JobMarks all_marks() const;
    JobMarks all_told_marks() const;
  };

  // The bytes that a job without a body, its tags, and a key without its text count as.
  struct Overhead {
    std::uint64_t job;
    std::uint64_t tags;
    std::uint64_t key;
    std::uint64_t tube;         // with keys, without its name
    std::uint64_t life;         // without its texts
    std::uint64_t concurrency;  // without its text
    std::uint64_t groups;       // without their names
  };

  // The mean time for which the jobs of a tube are worked on, in seconds, from the engine's
  // metrics: the model has no metrics.
  using MeanSeconds = std::function<double(std::string_view tube)>;

  Model(const Limits& limits, const Overhead& overhead, MeanSeconds mean_seconds)
      : limits_(limits), overhead_(overhead), mean_seconds_(std::move(mean_seconds)) {
    find_or_add_tube(kDefaultTube);
  }

  void set_limits(const Limits& limits) { limits_ = limits; }

  // False: the id is taken, or not dense.
  bool open(SessionId id);
  void close(SessionId id, Time now, Output& out);

  bool use(SessionId id, std::string_view tube);
  bool watch(SessionId id, std::string_view tube, std::uint32_t weight);
  void set_mode(SessionId id, ReserveMode mode) { session(id).mode = mode; }
  bool ignore(SessionId id, std::string_view tube);
  bool pause(std::string_view tube, TimeSpan duration, Time now, Output& out);
  const std::string& used(SessionId id) const { return session(id).used; }
  const std::vector<std::string>& watched(SessionId id) const { return session(id).watched; }
  std::vector<std::string> tubes() const;

  bool set_policy(Time now, const std::string& tube, PolicyKey key, const std::string& value,
                  Output& out);
  void set_patterns(Time now, std::vector<TubePattern> patterns, Output& out);
  const std::vector<TubePattern>& patterns() const { return patterns_; }
  bool is_full(const std::string& tube) const;

  bool claim_memory(std::uint64_t bytes);
  void return_memory(std::uint64_t bytes);

  void mark_producer(SessionId id) { session(id).producer = true; }
  JobId put(SessionId id, Time now, Job job, Output& out);
  std::optional<JobId> put_in_tube(std::string_view tube, Time now, Job job, Output& out);
  // The job has tags.
  std::optional<PutResult> put_with_tags(std::string_view tube, Time now, Job job, Output& out);
  void reserve(SessionId id, Time now, std::optional<Duration> limit, Output& out);
  void wait_for_job(SessionId id, Time now, JobId job, std::optional<Duration> limit, Output& out);
  void cancel_wait(SessionId id) {
    session(id).waiting = false;
    session(id).awaited = 0;
  }
  bool waits(SessionId id) const { return session(id).waiting || session(id).awaited != 0; }
  bool holds_jobs(SessionId id) const { return first_held(id) != nullptr; }
  bool reserve_job(SessionId id, Time now, JobId job);
  JobId reserve_ready(SessionId id, Time now);  // 0: no job is ready
  std::vector<JobId> held_jobs(SessionId id) const;
  bool remove(SessionId id, Time now, JobId job, Output& out);
  bool release(SessionId id, Time now, JobId job, Priority priority, TimeSpan delay, Output& out);
  bool bury(SessionId id, Time now, JobId job, Priority priority, Output& out);
  bool touch(SessionId id, Time now, JobId job, std::optional<TimeSpan> left);
  void record_reservations(FactSink* sink) { held_sink_ = sink; }
  void hold_over(Time until) { hold_until_ = until; }
  std::size_t held_over_count() const;
  bool remove_held(Time now, JobId job, Output& out);
  MoveResult move_job(SessionId id, Time now, JobId job, std::string_view tube,
                      const std::optional<NewPlace>& place, Output& out);
  std::optional<std::uint32_t> move_slice(Time now, Slices& move, std::string_view tube,
                                          Output& out);
  std::optional<bool> reprioritize(JobId job, Priority priority, Output& out);
  bool kick_job(Time now, JobId job, TimeSpan delay, Output& out);
  Slices begin_kick(std::string_view tube, std::optional<JobState> state,
                    std::uint64_t bound) const;
  std::uint32_t kick(Slices& kick, Time now, Output& out);

  std::uint64_t flush(std::string_view tube, Time now, Output& out);
  std::optional<std::uint64_t> truncate(std::string_view tube, Time now, Output& out);
  Slices begin_flush(std::string_view tube, JobState state, std::uint64_t bound) const;
  std::uint32_t flush_slice(Slices& flush, Time now, Output& out);
  bool has_removals(Time now) const;
  std::size_t flushed_jobs() const { return flushed_.size(); }
  // Which flushed job is removed next is not defined. False: the job was not flushed.
  bool remove_flushed(JobId id, Output& out);
  // The next flushed key, or cooldown that has ended.
  void remove_key(Time now, Output& out);
  void end_removals(Time now, Output& out) { serve_waiting(now, out); }
  // In the order of ids.
  std::vector<JobId> list(std::string_view tube, std::optional<JobState> state, bool held) const;
  std::optional<GroupInfo> group_info(const std::string& name) const;
  bool has_complete() const;

  // Returns the first job of the used tube in this state, or 0.
  JobId peek(SessionId id, JobState state) const;
  const std::vector<Job>& jobs() const { return jobs_; }  // in the order of ids
  // The memory that the durable state counts as.
  std::uint64_t durable_memory(Time now) const;
  JobId next_job_id() const { return next_job_id_; }

  Deadlines next_deadlines() const;
  void advance(Time now, Output& out);

  EngineInfo info() const;
  // oldest_ready_age is the age of the job that is given next. It has no histograms.
  TubeInfo tube_info(std::string_view tube, Time now) const;
  JobInfo job_info(const Job& job, Time now) const;

  void visit_durable(Time now, FactSink& sink) const;
  // Drops everything that visit_durable() does not emit. Held jobs are of the past then.
  void restart(Time now);

 private:
  struct Tube {
    std::string name;
    std::uint64_t number = 0;
    std::optional<Policy> policy = {};  // in force
    std::uint64_t total_jobs = 0;
    std::uint64_t delete_count = 0;
    std::uint64_t pause_count = 0;
    std::uint64_t reserve_count = 0;
    std::uint64_t timeout_count = 0;
    std::uint64_t bury_count = 0;
    Seconds pause{};
    Time pause_until{};
    bool paused = false;
    bool late = false;  // it has withheld an expired job
    // The time for which its rate allows jobs, as it was at a time. It is of the policy.
    Policy::Rate rate = {};
    Duration credit{};
    std::optional<Time> credited = std::nullopt;  // none: as much as it may have
    std::optional<Time> rate_until = std::nullopt;
  };
  struct Session {
    SessionId id = 0;
    std::string used;
    std::vector<std::string> watched;
    bool closing = false;
    bool producer = false;
    bool worker = false;
    bool waiting = false;  // in a reserve
    ReserveMode mode = ReserveMode::fifo;
    struct Weight {
      std::uint32_t weight = 1;
      std::uint64_t pass = 0;
    };
    std::map<std::string, Weight, std::less<>> weights;  // of watched tubes; else 1, from 0 on
    std::uint64_t pass = 0;
    std::uint64_t arrival = 0;
    JobId awaited = 0;  // it waits for the end of this job
    Time wait_until = kNever;
  };

  // A key that a deleted job had, or, in flushed_keys_, that a flushed job had.
  struct Key {
    JobId id = 0;
    std::string tube;
    std::string name;
    std::optional<Time> until;  // of the cooldown
    std::uint64_t flush = 0;    // which flush it was
  };

  // Of a tube, and as it will be when the present patterns are in force.
  std::optional<Policy> policy_of(const std::string& tube) const;
  std::optional<Policy> policy_to_be(const std::string& tube) const;
  void apply_patterns();
  bool is_withheld(const Tube& tube) const;
  bool has_late_tubes() const;
  bool is_blocked(const Job& job) const;
  bool has_members(const std::string& group) const;
  void end_delay(Job& job, Output& out);
  void complete_groups();
  void release_held(Output& out);
  void begin_policy(Tube& tube);
  void take_credit(Tube& tube, Time now);
  void apply_ttr(Job& job) const;
  void set_expiry(Job& job) const;
  static void set_expiry(Job& job, const std::optional<Policy>& policy);
  void come_back(JobId id, TimeSpan delay, Time now, Output& out);
  DeathReason why_dead(const Job& job) const;
  void expire(JobId id, Time now, Output& out);
  void retire(JobId id, const std::string& to, DeathReason reason, Time now, Output& out);
  static void begin_attempts(Job& job);
  bool renew(Job& job) const;
  bool change_tube(Time now, Job& job, const std::string& tube, Output& out);
  void end_rates(Time now);
  void end_lives(Time now, Output& out);
  bool expiry_is_due(Time now) const { return next_expiry() <= now; }
  Time next_expiry() const;

  std::uint64_t cost_of(const Job& job) const;
  std::uint64_t tags_memory(const Job& job) const;
  // Of the records of tubes that have these keys.
  std::uint64_t cost_of_tubes(const std::vector<Key>& keys) const;
  std::vector<Key> keys_of_jobs() const;
  std::uint64_t cost_of(const Key& key) const { return overhead_.key + key.name.size(); }
  std::optional<PutResult> duplicate(std::string_view tube, Time now, const Job& job, Output& out);
  bool flush_keys(std::string_view tube);
  void set_priority(Job& job, Priority priority, Output& out);
  void erase(JobId id, Time now, Output& out);
  void move_to(Time now, JobId id, std::string_view tube, const std::optional<NewPlace>& place,
               Output& out);
  JobId cooling(std::string_view tube, std::string_view name, Time now, Output& out);
  Session& session(SessionId id);
  const Session& session(SessionId id) const;
  Tube* find_tube(std::string_view name);
  const Tube* find_tube(std::string_view name) const;
  Tube* find_or_add_tube(std::string_view name);
  void remove_if_unwanted(std::string name);
  Job* find_job(JobId id);  // null if it is truncated
  Job* find_any_job(JobId id);
  Job* held_by(SessionId id, JobId job);
  // The session of the past, for which any other may act.
  static constexpr SessionId kPast = std::numeric_limits<SessionId>::max();
  static bool holds(SessionId id, const Job& job) {
    return job.holder == id || job.holder == kPast;
  }
  bool is_held_open(const Job& job) const;
  Time end_of_hold(const Job& job) const;
  void emit_held(const Job& job) const;
  const Job* first_held(SessionId id) const;
  const Job* best_ready(const Session& session, Time now);
  const Job* best_given(const Session& session) const;
  std::tuple<std::uint64_t, std::uint64_t, Priority, JobId> key_for(const Session& session,
                                                                    const Job& job) const;
  std::uint64_t pass_of(const Session& session, const std::string& tube) const;
  void charge(Session& session, const std::string& tube);
  Time wait_end(const Session& session) const;
  bool deadline_soon(SessionId id, Time now) const;

  void emit_placed(Job& job, Output& out);
  void make_ready(Job& job, Output& out);
  void emit_added(const Job& job, FactSink& sink) const;
  void give(Session& session, JobId job, Time now);
  void serve_waiting(Time now, Output& out);
  void give_to_waiting(Time now, Output& out);
  void answer_job_waits(Output& out);
  void continue_closing(Time now, Output& out);
  void end_reservations(Time now, Output& out);
  void end_delays(Time now, Output& out);
  void end_pauses(Time now);
  void end_waits(Time now, Output& out);
  bool makes_ready(Time now) const;
  StateCounts count_states(std::string_view tube) const;  // of all tubes if empty

  Slices slices(std::string_view tube, JobState state, std::uint64_t bound) const;
  Job* next_of(const Slices& slices);
  std::uint64_t take_all(std::string_view tube, std::vector<JobState> states);
  void give_back(JobId id, Time now, Output& out);
  // In their order: those that are not given for their concurrency key come last.
  std::vector<Job> jobs_in(std::string_view tube, JobState state) const;

  Limits limits_;
  Overhead overhead_;
  MeanSeconds mean_seconds_;
  std::vector<Job> jobs_;
  std::vector<Job> flushed_;
  std::vector<Key> cooldowns_;
  std::vector<Key> flushed_keys_;  // in the order of their removal
  std::vector<Tube> tubes_;
  std::size_t tubes_with_old_patterns_ = 0;
  std::vector<Session> sessions_;    // in the order of opening
  std::vector<SessionId> closing_;   // closed with jobs still to give back, newest last
  std::uint64_t claimed_bytes_ = 0;  // for bodies that are still arriving
  SessionId known_sessions_ = 0;     // the most that were ever there at once
  JobId next_job_id_ = 1;
  std::uint64_t next_arrival_ = 0;
  std::uint64_t next_tube_number_ = 0;
  std::uint64_t next_bury_order_ = 0;
  std::uint64_t next_reserve_order_ = 0;
  std::uint64_t next_hold_order_ = 0;
  std::vector<JobId> releasing_;  // held for groups that are complete, in order
  std::uint64_t timeouts_ = 0;
  std::uint64_t total_jobs_ = 0;
  std::uint64_t deduplicated_jobs_ = 0;
  std::uint64_t flushes_ = 0;
  std::uint64_t dead_jobs_ = 0;
  std::uint64_t expired_jobs_ = 0;
  std::map<std::pair<std::string, PolicyKey>, std::string> policy_values_;
  std::vector<TubePattern> patterns_;
  FactSink* held_sink_ = nullptr;  // null: reservations are not recorded
  Time hold_until_ = kNever;       // when the jobs of the past are given back
};

}  // namespace tubed::engine
