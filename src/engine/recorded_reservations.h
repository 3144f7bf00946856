// RecordedReservations: reservations as facts, for a queue whose log outlives the server that has
// given the jobs.
//
// With record_to() the engine emits a `Held` when a session gets a job and when a touch moves the
// end of its TTR. A fact about the resting place of a reserved job ends its `Held` for the log, so
// the `Held` is emitted again after it.
//
// A replay gives the job of a `Held` to the session of the past, which represents the sessions of
// another engine: it has no client and no id, and does not count in the statistics. Its jobs are
// reserved like all others. But any session may release, bury, touch, move or delete them, since a
// client that has reconnected is not recognized. A touch gives the job to the session that touches
// it. The session of the past gives a job back when its TTR passes, or at the time of hold_over()
// if that is earlier. This counts no timeout.
#pragma once

#include "engine/job_facts.h"
#include "tables/deadline_index.h"
#include "tables/job.h"
#include "tables/session_table.h"

namespace tubed::engine {

class RecordedReservations {
 public:
  // All of them outlive it.
  RecordedReservations(SessionTable& sessions, DeadlineIndex& deadlines)
      : sessions_(sessions), deadlines_(deadlines) {}

  // Emits a `Held` to the sink for each later reservation and touch, after the facts that the same
  // call has emitted before it. The durable state then has a `Held` for each job that a session
  // holds. Null, the default, records nothing. The sink outlives the engine.
  void record_to(FactSink* sink) { sink_ = sink; }
  bool is_recording() const { return sink_ != nullptr; }

  // Records the reservation of a job that a session has got or touched.
  void record(const Job& job) const {
    if (sink_ != nullptr) [[unlikely]]
      emit_held(job, *sink_);
  }
  // Follows a fact that gives the resting place of the job.
  void record_again(const Job& job) const {
    if (sink_ != nullptr && job.state == JobState::reserved) emit_held(job, *sink_);
  }
  // The same, as a part of the durable state, to another sink.
  void describe(const Job& job, FactSink& sink) const {
    if (sink_ != nullptr && job.state == JobState::reserved) emit_held(job, sink);
  }

  // Gives back the jobs that were held before the replay at that time at the latest. O(1).
  [[gnu::cold]] void hold_over(Time until) {
    sessions_.past().hold_until = until;
    deadlines_.update(sessions_.past());
  }
  // The number of these jobs that are still held.
  std::size_t held_over_count() const { return sessions_.past().held.size(); }
  // Gives a job of the session of the past to a session that touches it. O(log n).
  [[gnu::cold]] void take_over(Session& session, Job* job) {
    Session& past = *job->holder();
    past.held.erase(job);
    job->history().holder = &session;
    session.held.push({job->deadline, job->id}, job);
    deadlines_.update(past);
  }

 private:
  SessionTable& sessions_;
  DeadlineIndex& deadlines_;
  FactSink* sink_ = nullptr;  // null: reservations are not recorded
};

}  // namespace tubed::engine
