// Dispatcher: gives ready jobs to sessions, at once or after a wait, in the steps of
// tables/serve_queue.h.
//
// Invariant: between two calls of the engine no tube that gives jobs has both a ready job and a
// waiting session.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "engine/job_choice.h"
#include "facts/output.h"

namespace tubed::engine {

class Dispatcher {
 public:
  // They outlive it.
  Dispatcher(Parts& parts, JobChoice& choice) : parts_(parts), choice_(choice) {}

  // The number of sessions that wait in a reserve.
  std::uint64_t waiting() const { return waiting_; }

  // Reserves the job for the session: only here a session gets a job. O(log n).
  void reserve(Session& session, Time now, Job* job);
  // The same; returns the answer to the session.
  [[gnu::always_inline]] Notice give(Session& session, Time now, Job* job) {
    reserve(session, now, job);
    return {
        .session = session.id, .kind = Notice::Kind::reserved, .job = job->id, .body = job->body};
  }
  // The session waits for a job of its tubes, until that time at the latest. O(watched).
  void begin_wait(Session& session, Time until);
  // The session waits for the end of the job. O(log waiting sessions).
  [[gnu::cold]] void begin_wait_for(Session& session, JobId job, Time until);
  // Ends either wait without an answer. O(watched).
  void end_wait(Session& session);
  // Gives jobs to the sessions that wait in the queued tubes.
  void serve_waiting(Time now, Output& out) {
    if (parts_.extended || !parts_.serve_queue.empty()) serve_queued(now, out);
  }
  // A client has deleted or buried the job, or flushed jobs: answers the sessions that wait for
  // their end, and gives jobs to the sessions for which the end has made room.
  [[gnu::cold]] void job_has_ended(Time now, JobId job, Notice::Kind kind, Output& out);
  [[gnu::cold]] void jobs_were_flushed(Time now, Output& out);

 private:
  void serve_queued(Time now, Output& out);
  [[gnu::cold]] void release_held(Output& out);

  Parts& parts_;
  JobChoice& choice_;
  std::uint64_t next_arrival_ = 0;
  std::uint64_t waiting_ = 0;
};

}  // namespace tubed::engine
