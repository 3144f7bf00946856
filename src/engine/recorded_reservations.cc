// Engine: reservations as facts, for a queue whose log outlives the server that has given the jobs.
//
// With record_reservations() the engine emits a `Held` when a session gets a job and when a touch
// moves the end of its TTR. Where a fact about the resting place of a reserved job is emitted, its
// `Held` follows again, because the fact before has ended it.
//
// A replay gives the job of a `Held` to the session of the past, which stands for the sessions of
// another engine: it has no client and no id, and does not count in the statistics. Its jobs are
// reserved like all others. But any session may release, bury, touch, move or delete them, since a
// client that has reconnected is not recognized. A touch gives the job to the session that touches
// it. The session of the past gives a job back when its TTR passes, or at the time of hold_over()
// if that is earlier. This counts no timeout.
#include "engine/engine.h"
#include "engine/job_facts.h"

namespace tubed::engine {

// Called after a fact that gives the resting place of the job.
void Engine::emit_if_held(const Job& job, FactSink& sink) const {
  if (held_sink_ != nullptr && job.state == JobState::reserved) emit_held(job, sink);
}

void Engine::hold_over(Time until) {
  sessions_.past().hold_until = until;
  deadlines_.update(sessions_.past());
}

// From the session of the past.
void Engine::take_over(Session& session, Job* job) {
  Session& past = *job->holder();
  past.held.erase(job);
  job->history().holder = &session;
  session.held.push({job->deadline, job->id}, job);
  deadlines_.update(past);
}

}  // namespace tubed::engine
