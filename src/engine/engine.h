// Engine: the queue. It owns jobs, tubes and sessions and makes every decision about them.
//
// The caller passes the session, the request and the time of each call. The engine answers with
// return values, with facts (durable changes) and with notices (answers to sessions that waited),
// and reports retirements (dead and expired jobs).
// It does no I/O, reads no clock and uses no randomness: the same calls give the same answers.
//
// engine/parts.h lists the parts of the queue. Above them, JobChoice chooses the next job of a
// session, Dispatcher gives it, TubeMoves moves jobs to other tubes, and Flushes empties tubes.
// DueWork does the work of time, FactReplay applies facts, DurableState emits them, and Queries
// answers without a change. tables/serve_queue.h explains how a session gets a job,
// tables/deadline_index.h the work of time, facts/fact.h the replay law.
//
// Invariant: between two calls no tube that gives jobs has both a ready job and a waiting session.
// Invariant: `now` never goes backwards from call to call.
// Invariant: replaying the facts emitted so far gives the same durable state.
// Ties are broken by id (jobs), by arrival (waiting sessions) and by creation (tubes).
//
// The source files: engine.cc (sessions, tubes, policies, jobs), reservation.cc (reserving and
// waiting), flush.cc, invariants.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/due_work.h"
#include "engine/durable_state.h"
#include "engine/fact_replay.h"
#include "engine/flushes.h"
#include "engine/queries.h"
#include "engine/requests.h"
#include "engine/tube_moves.h"
#include "tables/tag_memory.h"

namespace tubed::engine {

class Engine {
 public:
  explicit Engine(const Limits& limits) : parts_(limits) {}

  // The new bounds apply at once. Jobs, tubes and watches that exceed them stay. If
  // tubes_with_metrics grows, tubes that are created later get a record of their own. If it
  // shrinks, the records above it are removed after their tubes.
  void set_limits(const Limits& limits) { parts_.limits = limits; }
  const Limits& limits() const { return parts_.limits; }

  // --- Parts that have an interface of their own.

  // Bounds the bodies that arrive, and their tags, by job_memory_bytes. For tags and marks:
  // tables/tag_memory.h.
  JobMemory& memory() { return parts_.memory; }
  const JobMemory& memory() const { return parts_.memory; }
  const TubeList& tube_list() const { return parts_.tubes.list(); }
  const Queries& queries() const { return queries_; }
  TubeMoves& tube_moves() { return tube_moves_; }
  const DurableState& durable_state() const { return durable_; }
  RecordedReservations& recorded_reservations() { return parts_.recorded; }
  TubeActivity& tube_activity() { return parts_.activity; }

  // --- Sessions. Ids are dense and reused after the old session has given back all its jobs.

  // Uses and watches "default". O(1).
  SessionId open();
  // Ends the session's wait without an answer and makes its reserved jobs ready: up to
  // work_per_turn of them now and the others in advance(). O(watched + held log n).
  void close(SessionId session, Time now, Output& out);
  // Makes its reserved jobs ready at once. These reservations are no attempts. O(held log n).
  void take_back(SessionId session, Time now, Output& out);
  // Takes back this job alone. Does nothing if the session does not hold it. O(log n).
  void take_back(SessionId session, Time now, JobId id, Output& out);
  // Counts the session as a producer. O(1).
  void mark_producer(SessionId session);
  // True if the session waits in a reserve, or for the end of a job.
  bool is_waiting(SessionId session) const { return parts_.sessions.at(session).waiting; }
  bool holds_jobs(SessionId session) const { return !parts_.sessions.at(session).held.empty(); }
  std::string_view used_tube(SessionId session) const {
    return parts_.sessions.at(session).used->name;
  }
  // True if the policy of the used tube allows no more jobs. O(1).
  bool uses_full_tube(SessionId session) const {
    return parts_.extended && parts_.sessions.at(session).used->is_full();
  }

  // --- Tubes. [protocol: use, watch, ignore, pause-tube]

  // Returns false if the tubes would be too many. O(log tubes).
  bool use(SessionId session, Time now, std::string_view tube);
  // Returns false if the tubes or watches would be too many. Sets the weight, at least 1, of a tube
  // that is watched already. O(watched).
  bool watch(SessionId session, Time now, std::string_view tube, std::uint32_t weight = 1);
  // Sets how the session chooses jobs. With weights, a reserve is O(watched). O(1).
  // [extension: reserve-mode]
  void set_mode(SessionId session, ReserveMode mode) { parts_.sessions.at(session).mode = mode; }
  // Returns false if it is the only watched tube, and true for a tube that is not watched.
  // O(watched).
  bool ignore(SessionId session, Time now, std::string_view tube);
  // Stops the tube from giving jobs for `duration`; 0 ends a pause. False: no such tube.
  bool pause(Time now, std::string_view tube, TimeSpan duration, Output& out);

  // --- Policies of tubes. [extension: tube policies]

  // Sets the value of a key by a client, for a tube that need not exist; kNoPolicyValue removes it.
  // The jobs that rest in the tube expire by a new ttl once they are put back at rest, or after
  // end_replay(). Returns false if too many values are set. Precondition: is_policy_value().
  // O(log tubes + patterns).
  [[gnu::cold]] bool set_policy(Time now, std::string_view tube, PolicyKey key,
                                std::string_view value, Output& out);
  // Replaces the policies of the settings, for work_per_turn tubes now and in each advance().
  // O(work_per_turn * patterns).
  [[gnu::cold]] void set_patterns(Time now, std::vector<TubePattern> patterns, Output& out);

  // --- Jobs.

  // Puts a job into the tube that the session uses. Precondition: the caller has claimed its
  // memory, which now belongs to the job. O(log n). [protocol: put]
  JobId put(SessionId session, Time now, PutRequest job, Output& out);
  // Puts a job into this tube, which is created if necessary. Returns no value if the tubes would
  // be too many; the memory still belongs to the caller. O(log n + log tubes).
  // [extension: put-in-tube]
  std::optional<JobId> put_in_tube(Time now, std::string_view tube, PutRequest job, Output& out);
  // The same, for a job with tags. If its unique key is taken, no job is added, and its memory is
  // free. If it is more urgent than the job that has the key, that job gets its priority.
  // O(log n + log tubes + log keys). [extension: put tags]
  [[gnu::cold]] std::optional<PutResult> put_with_tags(Time now, std::string_view tube,
                                                       PutRequest job, const JobTags& tags,
                                                       Output& out);
  // Adds a job as a fact describes it, in a tube that is created beyond the limit if necessary. A
  // buried job is the last of its tube. A job whose unique key is taken is added without it. A job
  // that rests delayed until kNever is held. Precondition: no job has had an id as high, the caller
  // has claimed the memory of the body, the tags and the marks, and the group that holds the job
  // has members or gets them next. O(log n).
  void add_job(Time now, const Added& added, const JobTags& tags, const JobMarks& marks,
               Output& out);
  // Asks for a job (tables/serve_queue.h). No value: the session waits, and a notice answers it
  // later. Precondition: the session is not waiting. O(watched) for a short watch list or if it has
  // to wait, else O(watched tubes that have ready jobs). [protocol: reserve, reserve-with-timeout]
  std::optional<Notice> reserve(SessionId session, Time now, Wait wait);
  // Reserves the job that reserve() would give, without waiting. No value: no job is ready. The
  // same cost. [extension: reserve-batch]
  std::optional<JobBody> reserve_ready(SessionId session, Time now);
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
  // Makes the job ready, or delays it by `delay` from now. False: no such job, or it is neither
  // buried nor delayed. O(log n). [protocol: kick-job; extension: kick-job with a delay]
  bool kick_job(Time now, JobId id, TimeSpan delay, Output& out);
  // Removes a job in any state, also from the session that holds it. False: no such job. O(log n).
  // [extension: delete-force]
  bool remove_held(Time now, JobId id, Output& out);
  // Moves up to work_per_turn jobs of a plan (Queries::slices_to_kick(), or Queries::slices() of
  // buried or delayed jobs) and returns how many. kick.left is the number still to move.
  // [protocol: kick]
  std::uint32_t kick(Time now, Slices& kick, Output& out);

  // --- Flushing (tables/flushed_jobs.h).

  // Removes all jobs of the tube, also from the clients that hold them, and returns how many. No
  // such tube: 0. Its unique keys are free. O(reserved jobs of the tube).
  [[gnu::cold]] std::uint64_t flush(Time now, std::string_view tube, Output& out);
  // The same, but the holder of a reserved job can still remove() it, and only jobs that are not
  // reserved are counted. No value: no such tube. O(reserved jobs of the tube).
  [[gnu::cold]] std::optional<std::uint64_t> truncate(Time now, std::string_view tube, Output& out);
  // Removes up to work_per_turn jobs and returns how many. flush.left is the number still to go.
  // Jobs that a truncate has left to their holders go as well. They are not counted, and their
  // facts go to `log`, as in remove_pending().
  [[gnu::cold]] std::uint32_t flush_slice(Time now, Slices& flush, FactSink& log, Output& out);
  // True: remove_pending() has something to do. O(1).
  bool has_removals(Time now) const { return flushes_.has_next(now); }
  // Frees up to an eighth of work_per_turn flushed jobs, flushed keys and cooldowns that have
  // ended, one at least, and emits a fact for each. O(log keys) for each.
  // The log gets the facts; sessions that waited for a job may get one.
  [[gnu::cold]] void remove_pending(Time now, FactSink& log, Output& out);

  // --- Time.

  // O(1).
  Deadlines next_deadlines() const { return due_work_.next(); }
  // Does the work that is due at or before now, for up to work_per_turn jobs or sessions of each
  // kind, in the order of tables/deadline_index.h. If more is due, next_deadlines() says so. O(due
  // log n).
  void advance(Time now, Output& out) { due_work_.advance(now, out); }

  EngineInfo info() const;
  // The number of entries of watch lists and of lists of jobs that all calls so far have walked.
  // The difference around a command is the cost of its O(watched) part, including the watch list of
  // a session that it served.
  std::uint64_t entries_walked() const { return parts_.entries_walked; }

  // --- Durable state.

  // Applies a fact that an engine has emitted. Precondition: no session is open. O(log n).
  void replay(Time now, const Fact& fact) { replay_.apply(now, fact); }
  // Ends the replay, as the first open() does otherwise: the policies in force apply to all jobs,
  // groups without members are complete, and buried jobs come into their order. O(n) if a policy is
  // set, else O(groups), and O(n log n) for the buried jobs of tubes that were buried in disorder.
  [[gnu::cold]] void end_replay() { replay_.end(); }

  // Walks all records and asserts the invariants of every structure. For tests.
  void check_invariants() const;

 private:
  Job* held_by(SessionId session, JobId id);
  Job* insert(Tube* tube, Time now, PutRequest& request);
  [[gnu::noinline]] Job* insert_out_of_line(Tube* tube, Time now, PutRequest& request);
  [[gnu::cold]] PutResult duplicate_of(const UniqueKey& key, Priority priority, Output& out);
  void mark_worker(Session& session);

  Parts parts_;
  JobChoice choice_{parts_};
  Dispatcher dispatcher_{parts_, choice_};
  DueWork due_work_{parts_, dispatcher_};
  TubeMoves tube_moves_{parts_, dispatcher_};
  Flushes flushes_{parts_};
  Queries queries_{parts_, choice_};
  DurableState durable_{parts_};
  FactReplay replay_{parts_, flushes_};
};

}  // namespace tubed::engine
