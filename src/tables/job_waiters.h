// JobWaiters: the sessions that wait for the end of a job [extension: wait].
//
// A session waits for at most one job, Session::awaited. A job has no record of its waiters, so a
// job that no session waits for pays nothing. Each place of the engine that removes, flushes or
// buries a job calls job_has_ended() or jobs_were_flushed(), and a move to another tube calls
// job_has_moved().
//
// It refers to sessions and owns none. Invariant between two calls of the engine: a job that a
// session waits for exists, is not flushed, and is not buried.
#pragma once

#include <cstdint>
#include <map>

#include "base/assert.h"
#include "facts/output.h"
#include "tables/deadline_index.h"
#include "tables/job.h"
#include "tables/job_table.h"

namespace tubed::engine {

class JobWaiters {
 public:
  // They outlive it.
  JobWaiters(DeadlineIndex& deadlines, std::uint64_t& entries_walked)
      : deadlines_(deadlines), entries_walked_(entries_walked) {}

  bool empty() const { return by_job_.empty(); }
  // How many sessions wait.
  std::size_t size() const { return size_; }

  // Lets the session wait for the job, until that time at the latest. Precondition: the job
  // exists and is not buried, and the session does not wait. O(log n).
  void add(Session& session, JobId job, Time until);
  // It no longer does. Precondition: it did. O(log n).
  void remove(Session& session);

  // Each gives the sessions that it concerns their answers. O(log n + waiting sessions), or for all
  // jobs of a flushed tube O(jobs that sessions wait for): the tube may have millions of jobs,
  // which are not walked.
  void job_has_ended(JobId job, Notice::Kind kind, Output& out);
  void jobs_were_flushed(const JobTable& jobs, Output& out);
  // For a session that may not see its new tube the job no longer exists.
  void job_has_moved(const Job& job, Output& out);

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

  // The session that waits longest for this job; null: none does.
  Session* first(JobId job) const;
  void end(Session& session, Notice::Kind kind, Output& out);

  DeadlineIndex& deadlines_;
  std::uint64_t& entries_walked_;
  // A tree and not a hash map: clients could choose ids that collide.
  std::map<JobId, Sessions> by_job_;
  std::size_t size_ = 0;
};

}  // namespace tubed::engine
