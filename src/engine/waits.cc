// Engine: waiting for the end of a job [extension: wait].
#include "engine/engine.h"

namespace tubed::engine {

std::optional<Notice> Engine::wait_for_job(SessionId id, Time now, JobId job_id, Wait wait) {
  Session& session = sessions_.at(id);
  TUBED_ASSERT(!session.waiting);
  const auto answer = [&](Notice::Kind kind) {
    return Notice{.session = id, .kind = kind, .job = job_id, .body = {}};
  };
  const Job* job = find_job(job_id);
  if (job == nullptr) return answer(Notice::Kind::not_found);
  if (job->state == JobState::buried) return answer(Notice::Kind::buried);
  if (wait.limit <= Duration::zero()) return answer(Notice::Kind::timed_out);
  extended_ = true;
  session.waiting = true;
  session.awaited = job_id;
  session.arrival = next_arrival_++;
  session.wait_until = wait.limit == Wait::kForever ? kNever : now + wait.limit;
  job_waiters_.add(&session);
  ++counts_.waiting_for_jobs;
  deadlines_.update(session);
  return {};
}

void Engine::end_job_wait(Session& session) {
  job_waiters_.erase(&session);
  session.awaited = 0;
  session.waiting = false;
  --counts_.waiting_for_jobs;
  deadlines_.update(session);
}

void Engine::end_job_waits(JobId job, Notice::Kind kind, Output& out) {
  while (Session* session = job_waiters_.first(job)) {
    end_job_wait(*session);
    out.notice({.session = session->id, .kind = kind, .job = job, .body = {}});
  }
}

// Called after a client has deleted or buried a job: its end may concern sessions that wait for it,
// and make room for other jobs.
void Engine::job_has_ended(Time now, JobId job, Notice::Kind kind, Output& out) {
  end_job_waits(job, kind, out);
  serve_waiting(now, out);
}

// The jobs of a flushed tube are not walked: it may have millions of them.
void Engine::end_flushed_waits(Output& out) {
  for (JobId job = job_waiters_.next_job(0); job != 0; job = job_waiters_.next_job(job)) {
    ++entries_walked_;
    if (find_job(job) == nullptr) end_job_waits(job, Notice::Kind::deleted, out);
  }
}

// The job has moved to another tube. For a session that may not see this tube it does not exist.
void Engine::end_hidden_waits(const Job& job, Output& out) {
  Session* session = job_waiters_.first(job.id);
  while (session != nullptr) {
    Session* next = JobWaiters::next(session);
    if (!out.may_see(session->id, job.tube->name)) {
      end_job_wait(*session);
      out.notice(
          {.session = session->id, .kind = Notice::Kind::not_found, .job = job.id, .body = {}});
    }
    session = next;
  }
}

}  // namespace tubed::engine
