#include "tables/job_waiters.h"

namespace tubed::engine {

void JobWaiters::add(Session& session, JobId job, Time until) {
  session.waiting = true;
  session.awaited = job;
  session.wait_until = until;
  by_job_[job].push_back(&session);
  ++size_;
  deadlines_.update(session);
}

void JobWaiters::remove(Session& session) {
  const auto found = by_job_.find(session.awaited);
  TUBED_ASSERT(found != by_job_.end());
  found->second.erase(&session);
  if (found->second.empty()) by_job_.erase(found);
  --size_;
  session.awaited = 0;
  session.waiting = false;
  deadlines_.update(session);
}

Session* JobWaiters::first(JobId job) const {
  const auto found = by_job_.find(job);
  return found == by_job_.end() ? nullptr : found->second.first();
}

void JobWaiters::end(Session& session, Notice::Kind kind, Output& out) {
  const JobId job = session.awaited;
  remove(session);
  out.notice({.session = session.id, .kind = kind, .job = job, .body = {}});
}

void JobWaiters::job_has_ended(JobId job, Notice::Kind kind, Output& out) {
  while (Session* session = first(job)) end(*session, kind, out);
}

void JobWaiters::jobs_were_flushed(const JobTable& jobs, Output& out) {
  JobId last = 0;
  for (auto next = by_job_.begin(); next != by_job_.end(); next = by_job_.upper_bound(last)) {
    ++entries_walked_;
    last = next->first;
    if (jobs.find_present(last) == nullptr) job_has_ended(last, Notice::Kind::deleted, out);
  }
}

void JobWaiters::job_has_moved(const Job& job, Output& out) {
  Session* session = first(job.id);
  while (session != nullptr) {
    Session* next = Sessions::next(session);
    if (!out.may_see(session->id, job.tube->name)) end(*session, Notice::Kind::not_found, out);
    session = next;
  }
}

}  // namespace tubed::engine
