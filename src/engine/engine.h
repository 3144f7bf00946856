// Engine: the queue. It owns jobs, tubes and sessions and decides everything about them.
//
// The caller passes the session, the request and the time of each call. The engine answers with
// return values, with facts (durable changes) and with notices (answers to sessions that waited),
// and reports retirements (dead and expired jobs).
// It does no I/O, reads no clock and uses no randomness: the same calls give the same answers.
//
// Its parts: JobTable, TubeTable and SessionTable own the records (engine/job.h), and TagRecords
// those of tags. TubeRegistry begins and ends tubes. JobMoves takes a job from one place to
// another, JobRemoval ends it, and Lives decides by policies and tags what becomes of a job that
// comes back or expires. Tags sets the tags of a job, whose effects are in UniqueKeys,
// ConcurrencyKeys, Groups and Expiries; ReservationLimits bounds what a tube gives. JobWaiters
// answers the sessions that wait for the end of a job. Flushes empties tubes, and FactReplay
// applies facts. DeadlineIndex says what is due and explains what time does. ServeQueue explains
// how a session gets a job. The replay law is in engine/fact.h. TubeMetricsRegistry counts for the
// metrics of each tube.
//
// Invariant: between two calls no tube that gives jobs has both a ready job and a waiting session.
// Invariant: `now` never goes backwards from call to call.
// Invariant: replaying the facts emitted so far gives the same durable state.
// Ties are broken by id (jobs), by arrival (waiting sessions) and by creation (tubes).
//
// The source files: engine.cc (sessions, tubes, policies, jobs), reservation.cc (reserving, waiting
// and time), kick.cc, flush.cc, move.cc, durable.cc (durable state),
// recorded_reservations.cc (reservations as facts), info.cc (queries), invariants.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/concurrency_keys.h"
#include "engine/deadline_index.h"
#include "engine/expiries.h"
#include "engine/fact_replay.h"
#include "engine/flushed_jobs.h"
#include "engine/flushes.h"
#include "engine/groups.h"
#include "engine/info.h"
#include "engine/job.h"
#include "engine/job_memory.h"
#include "engine/job_moves.h"
#include "engine/job_removal.h"
#include "engine/job_table.h"
#include "engine/job_waiters.h"
#include "engine/lives.h"
#include "engine/output.h"
#include "engine/policies.h"
#include "engine/requests.h"
#include "engine/reservation_limits.h"
#include "engine/serve_queue.h"
#include "engine/session_table.h"
#include "engine/tag_memory.h"
#include "engine/tag_records.h"
#include "engine/tags.h"
#include "engine/tube_metrics.h"
#include "engine/tube_registry.h"
#include "engine/tube_table.h"
#include "engine/types.h"
#include "engine/unique_keys.h"

namespace tubed::engine {

class Engine {
 public:
  explicit Engine(const Limits& limits);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The new bounds apply from now on. Jobs, tubes and watches that exceed them stay. If
  // tubes_with_metrics grows, tubes that are created later get a record of their own. If it
  // shrinks, the records above it are removed after their tubes.
  void set_limits(const Limits& limits) { limits_ = limits; }
  const Limits& limits() const { return limits_; }

  // --- Sessions. Ids are dense and reused after the old session has given back all its jobs.

  // Uses and watches "default". O(1).
  SessionId open();
  // Ends the session's wait without an answer and makes its reserved jobs ready: up to
  // work_per_turn of them now and the others in advance(). O(watched + held log n).
  void close(SessionId session, Time now, Output& out);
  // Makes its reserved jobs ready at once. These reservations are no attempts. O(held log n).
  void take_back(SessionId session, Time now, Output& out);
  // The same for one of them. Nothing happens if the session does not hold it. O(log n).
  void take_back(SessionId session, Time now, JobId id, Output& out);

  // --- Tubes. [protocol: use, watch, ignore, list-tubes*, pause-tube]

  // False: too many tubes. O(log tubes).
  bool use(SessionId session, Time now, std::string_view tube);
  // False: too many tubes or watches. A tube that is watched already gets the weight, at least 1.
  // O(watched).
  bool watch(SessionId session, Time now, std::string_view tube, std::uint32_t weight = 1);
  // From now on the session reserves in this mode. With weights, a reserve is O(watched). O(1).
  // [extension: reserve-mode]
  void set_mode(SessionId session, ReserveMode mode) { sessions_.at(session).mode = mode; }
  // False: it is the only watched tube. True for a tube that is not watched. O(watched).
  bool ignore(SessionId session, Time now, std::string_view tube);
  std::size_t watched_count(SessionId session) const;
  std::string_view watched_tube(SessionId session, std::size_t place) const;  // in list order; O(1)
  // How many entries of watch lists and of lists of jobs all calls so far have walked. The
  // difference around a command is the cost of its O(watched) part, including the watch list of a
  // session that it served.
  std::uint64_t entries_walked() const { return entries_walked_; }
  std::string_view used_tube(SessionId session) const;
  // True: the session waits in a reserve, or for the end of a job.
  bool is_waiting(SessionId session) const { return sessions_.at(session).waiting; }
  std::string_view tube_of(JobId id) const;  // empty: there is no such job; O(1)
  // Also for a job whose tube was truncated. No value: the session does not hold the job. O(1).
  std::optional<std::string_view> tube_of_held(SessionId session, JobId id) const;
  std::optional<SessionId> holder_of(JobId id) const;  // no value: none, or that of the past; O(1)
  bool holds_jobs(SessionId session) const { return !sessions_.at(session).held.empty(); }
  std::size_t held_count(SessionId session) const { return sessions_.at(session).held.size(); }
  // Calls visit(std::string_view) for the name of each tube, in list order.
  template <class Visit>
  void for_each_tube(Visit visit) const;
  // The same for one part of the list. tube_list_change() grows with each change of the part or,
  // without an argument, of the list. O(1) without the visits.
  std::size_t tube_list_parts() const { return tubes_.list_parts(); }
  std::uint64_t tube_list_change(std::size_t part) const { return tubes_.list_change(part); }
  std::uint64_t tube_list_change() const { return tubes_.list_change(); }
  template <class Visit>
  void for_each_tube(std::size_t part, Visit visit) const;
  template <class Visit>
  void for_each_watched(SessionId session, Visit visit) const;
  // The tube gives no jobs for `duration` from now on; 0 ends a pause. False: no such tube.
  bool pause(Time now, std::string_view tube, TimeSpan duration, Output& out);

  // --- Policies of tubes. [extension: tube policies]

  // A client sets the value of a key, for a tube that need not exist; kNoPolicyValue takes it away.
  // The jobs that rest in the tube expire by a new ttl from when they next come to rest, or after
  // end_replay(). False: too many values are set. Precondition: is_policy_value(). O(log tubes +
  // patterns).
  [[gnu::cold]] bool set_policy(Time now, std::string_view tube, PolicyKey key,
                                std::string_view value, Output& out);
  // Replaces the policies of the settings, for work_per_turn tubes now and in each advance().
  // O(work_per_turn * patterns).
  [[gnu::cold]] void set_patterns(Time now, std::vector<TubePattern> patterns, Output& out);
  const Policies& policies() const { return policies_; }
  // True: the policy of the tube, or of the tube that the session uses, allows no more jobs. O(log
  // tubes), O(1).
  bool is_full(std::string_view tube) const {
    const Tube* found = tubes_.find(tube);
    return found != nullptr && is_full(*found);
  }
  bool uses_full_tube(SessionId id) const { return extended_ && is_full(*sessions_.at(id).used); }

  // --- Memory. A body that is still arriving, and its tags, count against job_memory_bytes. For
  // tags and marks: engine/tag_memory.h.

  // The bytes that a job with a body of this size counts as.
  static std::uint64_t job_memory(std::uint32_t bytes) { return JobMemory::cost_of(bytes); }
  // False: a job whose body and tags count as these bytes would exceed the limit. O(1).
  bool claim_memory(std::uint32_t bytes) { return memory_.claim(bytes, limits_.job_memory_bytes); }
  // True: the last claim was refused and would be refused again. O(1).
  bool memory_is_short() const { return memory_.is_short(limits_.job_memory_bytes); }
  // The bytes of all jobs and of all bodies that are still arriving.
  std::uint64_t memory_bytes() const { return memory_.bytes(); }
  // For a body that did not arrive. Precondition: these bytes were claimed.
  void return_memory(std::uint32_t bytes) { memory_.give_back(bytes); }

  // --- Jobs.

  // The session counts as a producer from now on. O(1).
  void mark_producer(SessionId session);
  // Puts a job into the tube that the session uses. Precondition: the caller has claimed its
  // memory, which now belongs to the job. O(log n). [protocol: put]
  JobId put(SessionId session, Time now, PutRequest job, Output& out);
  // The same, into a tube of this name, which is created if necessary. No value: too many tubes;
  // the memory still belongs to the caller. O(log n + log tubes). [extension: put-in-tube]
  std::optional<JobId> put_in_tube(Time now, std::string_view tube, PutRequest job, Output& out);
  // The same, for a job with tags. If its unique key is taken, no job is added, and its memory is
  // free. If it is more urgent than the job that has the key, that job gets its priority. O(log n +
  // log tubes + log keys). [extension: put tags]
  [[gnu::cold]] std::optional<PutResult> put_with_tags(Time now, std::string_view tube,
                                                       PutRequest job, const JobTags& tags,
                                                       Output& out);
  // False: a job cannot be put into that tube, because it would be one tube too many. O(log tubes).
  bool has_room_for_tube(std::string_view tube) const { return registry_.has_room_for(tube); }
  // Adds a job as a fact describes it, in a tube that is created beyond the limit if necessary. A
  // buried job is the last of its tube. A job whose unique key is taken is added without it. A job
  // that rests delayed until kNever is held. Precondition: no job has had an id as high, the caller
  // has claimed the memory of the body, the tags and the marks, and the group that holds the job
  // has members or gets them next. O(log n).
  void add_job(Time now, const Added& added, const JobTags& tags, const JobMarks& marks,
               Output& out);
  // Asks for a job (engine/serve_queue.h). No value: the session waits, and a notice answers it
  // later. Precondition: the session is not waiting. O(watched) for a short watch list or if it has
  // to wait, else O(watched tubes that have ready jobs). [protocol: reserve, reserve-with-timeout]
  std::optional<Notice> reserve(SessionId session, Time now, Wait wait);
  // Reserves the job that reserve() would give, without waiting. No value: no job is ready. The
  // same cost. [extension: reserve-batch]
  std::optional<JobBody> reserve_ready(SessionId session, Time now);
  // The job that it would give. The same cost.
  std::optional<JobBody> peek_next(SessionId session, Time now);
  // False: all tubes give no jobs, until a call with true, O(tubes), serves those that wait.
  [[gnu::cold]] void set_giving(bool giving, Time now, Output& out);
  // Ends a wait without a notice. Precondition: the session is waiting. O(watched).
  void cancel_wait(SessionId session);
  // Waits until the job has ended: it is deleted, flushed or buried. No value: it has not, and a
  // notice answers later. Precondition: the session is not waiting. O(log waiting sessions).
  // [extension: wait]
  [[gnu::cold]] std::optional<Notice> wait_for_job(SessionId session, Time now, JobId job,
                                                   Wait wait);
  // Reserves one ready, delayed or buried job. No value: no such job, or a session holds it.
  // O(log n).
  std::optional<JobBody> reserve_job(SessionId session, Time now, JobId id);
  // False: no such job, or another session holds it. O(log n). [protocol: delete]
  bool remove(SessionId session, Time now, JobId id, Output& out);
  // False (release, bury, touch): the session does not hold the job. O(log n).
  bool release(SessionId session, Time now, JobId id, Priority priority, TimeSpan delay,
               Output& out);
  bool bury(SessionId session, Time now, JobId id, Priority priority, Output& out);
  // With a time the reservation ends after it, and 0 becomes 1. [extension: touch with seconds]
  bool touch(SessionId session, Time now, JobId id, std::optional<TimeSpan> left = {});
  // The ids of the jobs that the session holds. O(held).
  std::vector<JobId> held_jobs(SessionId session) const;
  // False: no such job, or it is neither buried nor delayed. With a delay the job is delayed by it,
  // from now on. O(log n). [protocol: kick-job; extension: kick-job with a delay]
  bool kick_job(Time now, JobId id, TimeSpan delay, Output& out);
  // Removes a job in any state, also from the session that holds it. False: no such job. O(log n).
  // [extension: delete-force]
  bool remove_held(Time now, JobId id, Output& out);

  // --- Moving (move.cc).

  struct NewPlace {
    Priority priority = 0;
    TimeSpan delay;  // 0: ready
  };
  enum class MoveResult : std::uint8_t { moved, not_found, too_many_tubes, tube_full };
  // Moves a job to the tube, which is created if necessary and may be that of the job. It stays
  // ready, delayed or buried, unless a place is given; a job that the session holds becomes ready.
  // Not found: also a job that another session holds. O(log n + log tubes). [extension: move-job]
  [[gnu::cold]] MoveResult move_job(SessionId session, Time now, JobId id, std::string_view tube,
                                    const std::optional<NewPlace>& place, Output& out);
  // Begins to move the tube's jobs in this state, which is not reserved, `bound` at most. The order
  // is that of Tube::first(). O(log tubes).
  Slices begin_move(std::string_view tube, JobState state, std::uint64_t bound) const;
  // Moves up to work_per_turn jobs to that tube, none to their own, and returns how many. move.left
  // is how many are left. No value: none was moved: it would be one tube too many, or it is full.
  [[gnu::cold]] std::optional<std::uint32_t> move_slice(Time now, Slices& move,
                                                        std::string_view tube, Output& out);
  // No value: no such job. False: a session holds it. O(log n). [extension: reprioritize]
  [[gnu::cold]] std::optional<bool> reprioritize(JobId id, Priority priority, Output& out);

  // Begins a kick: of the tube's buried jobs if it has any, else of its delayed jobs, `bound` at
  // most. No job moves yet, and none will if no such tube exists. O(log tubes). [protocol: kick]
  Slices begin_kick(std::string_view tube, std::uint64_t bound) const;
  // The same for buried or for delayed jobs. Precondition: `state` is one of them.
  Slices begin_kick(std::string_view tube, JobState state, std::uint64_t bound) const;
  // Moves up to work_per_turn jobs and returns how many. kick.left is the number still to move.
  std::uint32_t kick(Time now, Slices& kick, Output& out);

  // --- Flushing (engine/flushed_jobs.h).

  // Removes all jobs of the tube, also from the clients that hold them, and returns how many. No
  // such tube: 0. Its unique keys are free. O(reserved jobs of the tube).
  [[gnu::cold]] std::uint64_t flush(Time now, std::string_view tube, Output& out);
  // The same, but the holder of a reserved job can still remove() it, and only jobs that are not
  // reserved are counted. No value: no such tube. O(reserved jobs of the tube).
  [[gnu::cold]] std::optional<std::uint64_t> truncate(Time now, std::string_view tube, Output& out);
  // Begins a flush, in the order of Tube::first(), of `bound` jobs at most. O(log tubes).
  Slices begin_flush(std::string_view tube, JobState state, std::uint64_t bound) const;
  // Removes up to work_per_turn jobs and returns how many. flush.left is the number still to go.
  // Jobs that a truncate has left to their holders go as well. They are not counted, and their
  // facts go to `log`, as those of remove_pending().
  [[gnu::cold]] std::uint32_t flush_slice(Time now, Slices& flush, FactSink& log, Output& out);
  // True: remove_pending() has something to do. O(1).
  bool has_removals(Time now) const { return flushes_.has_next(now); }
  // Frees up to an eighth of work_per_turn flushed jobs, flushed keys and cooldowns that have
  // ended, one at least, and emits a fact for each. O(log keys) for each.
  // The log gets the facts; sessions that waited for a job may get one.
  [[gnu::cold]] void remove_pending(Time now, FactSink& log, Output& out);

  // Calls visit(JobId) for each job, in the order of ids. O(n).
  template <class Visit>
  void for_each_job(Visit visit) const {
    jobs_.for_each([&](const Job& job) {
      if (!job.flushed()) visit(job.id);
    });
  }
  // The id that the next put gets.
  JobId next_id() const { return jobs_.next_id(); }

  // No value: no such job. O(1). [protocol: peek]
  std::optional<JobBody> peek(JobId id) const;
  std::optional<JobBody> peek_ready(SessionId session);
  std::optional<JobBody> peek_delayed(SessionId session) const;
  std::optional<JobBody> peek_buried(SessionId session) const;
  // The job of the used tube that was reserved first, of those that are reserved. O(1), unless the
  // tube was truncated.
  std::optional<JobBody> peek_reserved(SessionId session) const;
  // A page of the tube's jobs in this state (of delayed jobs: those that are held, or those that
  // are not), or in any, in the order of ids from `from` on. A page may be shorter than `limit`. A
  // job that is there during the whole walk is listed exactly once. O(jobs in the state), or
  // O(kMaxIdsInPage) if that is less.
  [[gnu::cold]] JobPage list_jobs(std::string_view tube, std::optional<JobState> state, JobId from,
                                  std::uint32_t limit, bool held = false);
  // The first `limit` ready jobs of the tube, in the order in which they are given; of those with
  // one concurrency key, the first.
  // O(limit log limit).
  [[gnu::cold]] JobPage next_jobs(std::string_view tube, std::uint32_t limit);
  static constexpr std::uint32_t kMaxIdsInPage = 10'000;

  // --- Time.

  // O(1).
  Deadlines next_deadlines() const;
  // Does the work that is due at or before now, for up to work_per_turn jobs or sessions of each
  // kind, in the order of engine/deadline_index.h. If more is due, next_deadlines() says so. O(due
  // log n).
  void advance(Time now, Output& out);

  // --- Queries. O(log tubes) at most. No value: no such tube or job. [protocol: stats, stats-tube,
  // stats-job]

  EngineInfo info() const;
  std::optional<TubeInfo> tube_info(Time now, std::string_view tube) const;
  // Calls visit(const TubeInfo&) for `limit` tubes at most, in list order, from this place of the
  // list on. Returns the place of the next tube; 0: the list ends before it. Between two calls a
  // tube that is removed gives its place to the last tube of the list. O(limit).
  // [extension: stats-tubes]
  template <class Visit>
  std::uint64_t visit_tubes(Time now, std::uint64_t from, std::uint32_t limit, Visit visit);
  std::optional<JobInfo> job_info(Time now, JobId id) const;
  // No value: the group has neither members nor jobs that wait for it. O(log groups). [extension:
  // stats-group]
  std::optional<GroupInfo> group_info(std::string_view name) const { return groups_.info(name); }

  // Valid until the engine's next change.
  const TubeMetricsRegistry& tube_metrics() const { return tube_metrics_; }

  // --- Durable state.

  // Applies a fact that an engine has emitted. Precondition: no session is open. O(log n).
  void replay(Time now, const Fact& fact);
  // After the last of them: the policies in force apply to all jobs, and groups without members are
  // complete; buried jobs come into their order. O(n) if a policy is set, else O(groups), and O(n
  // log n) for the buried jobs of tubes that were buried in disorder. The first open() does it
  // otherwise.
  [[gnu::cold]] void end_replay() { replay_.end(); }
  // Emits a minimal list of facts that gives this durable state. O(n).
  void visit_durable(Time now, FactSink& sink) const;
  // Emits the fact that gives the state of this id: the job in its resting place, followed by its
  // `Held` if it has one, the cooldown of its key, or, without either and if it was flushed,
  // `Removed`. O(1).
  void describe(Time now, JobId id, FactSink& sink) const;
  // Emits the fact that gives the state of this id again if an earlier fact may have given a time
  // for it: the `Placed` of a job that is delayed, or whose delay has ended by itself, the `Held`
  // of a job, or the `Remembered` of a cooldown. O(1).
  void describe_delay(Time now, JobId id, FactSink& sink) const;

  // --- Reservations as facts (recorded_reservations.cc).

  // From now on a `Held` goes to the sink for each reservation and touch, after the facts of the
  // same call up to there, and the durable state has one for each job that a session holds. Null,
  // the default: not. The sink outlives the engine.
  void record_reservations(FactSink* sink) { held_sink_ = sink; }
  // The jobs that were held before the replay are given back at that time at the latest. O(1).
  [[gnu::cold]] void hold_over(Time until);
  // How many of these are still held.
  std::size_t held_over_count() const { return sessions_.past().held.size(); }

  // Walks all records and asserts the invariants of every structure. For tests.
  void check_invariants() const;

 private:
  Job* held_by(SessionId session, JobId id);
  // Any session may act for the session of the past.
  bool holds(SessionId session, const Job& job) const {
    return job.holder() == &sessions_.at(session) || job.holder()->past;
  }

  std::vector<WatchEntry>::iterator find_watch(Session& session, const Tube* tube);

  [[gnu::cold]] void take_over(Session& session, Job* job);
  void emit_if_held(const Job& job, FactSink& sink) const;
  Slices slices(std::string_view tube, JobState state, std::uint64_t bound) const;
  Job* insert(Tube* tube, Time now, PutRequest& request);
  [[gnu::noinline]] Job* insert_out_of_line(Tube* tube, Time now, PutRequest& request);
  void give_back(Time now, Job* job, Output& out);
  void kick_one(Job* job, Output& out);
  void move_to(Time now, Job* job, Tube* to, const std::optional<NewPlace>& place, Output& out);
  [[gnu::cold]] void set_priority(Job& job, Priority priority, Output& out);

  // Policies.
  static bool is_full(const Tube& tube) {
    return tube.rules != nullptr && tube.rules->is_full(tube.job_count());
  }
  bool expiry_is_due(Time now) const { return extended_ && expiries_.next() <= now; }

  [[gnu::cold]] PutResult duplicate_of(const UniqueKey& key, Priority priority, Output& out);

  bool has_jobs(std::string_view tube) const;
  void jobs_were_flushed(Time now, Output& out);

  Job* first_of(Tube* tube, JobState state);

  [[gnu::cold]] void release_held(Output& out);

  void mark_worker(Session& session);
  Job* best_ready(const Session& session, Time now);
  Job* best_by_priority(const Session& session);
  [[gnu::cold]] Job* best_that_lives(const Session& session, Time now);
  [[gnu::cold]] Job* next_by_weight(const Session& session);
  [[gnu::cold]] void charge_watch(Session& session, const Tube* tube);
  void serve_waiting(Time now, Output& out) {
    if (extended_ || !serve_queue_.empty()) serve_queued(now, out);
  }
  void serve_queued(Time now, Output& out);
  void end_wait(Session& session);
  void reserve_for(Session& session, Time now, Job* job);
  Notice give(Session& session, Time now, Job* job);
  void give_back_held(Session& session, Time now, std::uint32_t& budget, Output& out);

  [[gnu::cold]] void job_has_ended(Time now, JobId job, Notice::Kind kind, Output& out);

  [[gnu::cold]] void add_rules(Deadlines& next) const;
  // Work that earlier calls have left to advance().
  bool has_unfinished() const;
  bool makes_ready(Time now) const;
  void end_reservations(Time now, Output& out);
  void end_delays(Time now, Output& out);
  void end_pauses(Time now);
  void end_waits(Time now, Output& out);
  void continue_closing(Time now, Output& out);

  Limits limits_;
  JobTable jobs_;
  Policies policies_;
  TubeTable tubes_;
  TubeMetricsRegistry tube_metrics_;
  SessionTable sessions_;
  DeadlineIndex deadlines_;
  ServeQueue serve_queue_;  // empty between calls
  JobWaiters job_waiters_;
  JobMemory memory_;
  std::uint64_t entries_walked_ = 0;
  FlushedJobs flushed_;
  // Policies, keys, groups, times to live, waits for jobs or set_giving() are used, or were.
  bool extended_ = false;
  TagRecords tag_records_;
  UniqueKeys unique_keys_;
  ConcurrencyKeys concurrency_keys_;
  Groups groups_;
  Expiries expiries_;
  ReservationLimits reservation_limits_;
  TubeRegistry registry_;
  JobMoves moves_;
  Tags tags_;
  JobRemoval removal_;
  Lives lives_;
  Flushes flushes_;
  FactReplay replay_;
  bool giving_ = true;  // set_giving(); false only if extended_
  std::uint64_t next_arrival_ = 0;
  std::uint64_t watch_count_ = 0;  // entries of all watch lists
  EngineInfo counts_;              // only the counts that no other member has
  FactSink* held_sink_ = nullptr;  // null: reservations are not recorded
};

}  // namespace tubed::engine

#include "engine/walks.h"
