// JobWaiters: the sessions that wait for the end of a job [extension: wait].
//
// A session waits for at most one job, Session::awaited. A job has no record of its waiters, so a
// job that no session waits for pays nothing. Each place of the engine that removes, flushes or
// buries a job calls Engine::end_job_waits() or end_flushed_waits() if this is not empty.
//
// It refers to sessions and owns none. Invariant between two calls of the engine: a job that a
// session waits for exists, is not flushed, and is not buried.
#pragma once

#include <map>

#include "base/assert.h"
#include "engine/job.h"

namespace tubed::engine {

class JobWaiters {
 public:
  bool empty() const { return by_job_.empty(); }

  // Precondition: session.awaited is set, and the session was not added. O(log n).
  void add(Session* session) { by_job_[session->awaited].push_back(session); }
  // Precondition: it was added. O(log n).
  void erase(Session* session) {
    const auto found = by_job_.find(session->awaited);
    TUBED_ASSERT(found != by_job_.end());
    found->second.erase(session);
    if (found->second.empty()) by_job_.erase(found);
  }

  // The session that waits longest for this job; null: none does. O(log n).
  Session* first(JobId job) const {
    const auto found = by_job_.find(job);
    return found == by_job_.end() ? nullptr : found->second.first();
  }
  // The session that waits next longest for the same job; null: none does. O(1).
  static Session* next(const Session* session) { return Sessions::next(session); }
  // The first job after `job` that a session waits for; 0: none. O(log n).
  JobId next_job(JobId job) const {
    const auto found = by_job_.upper_bound(job);
    return found == by_job_.end() ? 0 : found->first;
  }

  // Calls visit(JobId, const Session&) for each session. For tests.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [job, sessions] : by_job_) {
      sessions.check_invariants();
      TUBED_ASSERT(!sessions.empty());
      for (const Session* session = sessions.first(); session != nullptr;
           session = Sessions::next(session)) {
        visit(job, *session);
      }
    }
  }

 private:
  using Sessions = IntrusiveList<Session, &Session::awaiting_links>;  // in order of arrival

  // A tree and not a hash map: clients could choose ids that collide.
  std::map<JobId, Sessions> by_job_;
};

}  // namespace tubed::engine
