// Lives: how policies of tubes and tags limit the lives of jobs.
//
// A job is governed if its tube has a policy (TubeRules) or it has a LifeRecord of its own. When a
// governed job comes back, by a release, a timeout or a closed session, come_back() decides, in
// this order: it has expired; it has been tried as often as it may, and is dead; it is delayed by
// the backoff; it is ready. retire() then does what the policy says about a dead or expired job,
// and emits the same facts as a command that does that: a log needs no policy to replay them. For
// test mode it reports the retirement before the facts.
//
// When jobs expire: tables/expiries.h.
#pragma once

#include <cstdint>
#include <string>

#include "engine/job_moves.h"
#include "engine/job_removal.h"
#include "engine/tube_registry.h"
#include "facts/output.h"
#include "tables/expiries.h"
#include "tables/job.h"
#include "tables/job_waiters.h"
#include "tables/serve_queue.h"
#include "tables/tag_records.h"

namespace tubed::engine {

class Lives {
 public:
  // All of them outlive it. While `extended` is false, no job is governed.
  Lives(JobMoves& moves, JobRemoval& removal, TubeRegistry& registry, TagRecords& records,
        Expiries& expiries, JobWaiters& job_waiters, ServeQueue& serve_queue, const bool& extended)
      : moves_(moves),
        removal_(removal),
        registry_(registry),
        records_(records),
        expiries_(expiries),
        job_waiters_(job_waiters),
        serve_queue_(serve_queue),
        extended_(extended) {}

  // True: a policy or a tag may decide about the job when it comes back. O(1).
  bool governs(const Job& job) const {
    return extended_ && (job.tube->rules != nullptr || job.life() != nullptr);
  }

  // Each is O(log n) for a job. The end of a job may also cost O(sessions that wait for it), and
  // O(log tubes + patterns) if it moves to a new tube.

  // A governed job comes back from its client, which may have asked for a delay.
  [[gnu::cold]] void come_back(Time now, Job* job, TimeSpan delay, Output& out);
  // A job, which need not be governed, comes back that its client never got: neither its attempts
  // nor a backoff decide about it.
  void take_back(Time now, Job* job, Output& out);
  // A client kicks or moves a governed job, which may be in another tube now. True: its marks have
  // changed.
  [[gnu::cold]] bool renew(Job& job);
  // A client kicks a job, which becomes ready.
  void kick(Job* job, Output& out);
  // Ends up to `budget` jobs that have expired.
  void end_due(Time now, std::uint32_t budget, Output& out);

  // How many jobs were dead, and how many have expired.
  std::uint64_t dead_jobs() const { return dead_jobs_; }
  std::uint64_t expired_jobs() const { return expired_jobs_; }

 private:
  void retire(Time now, Job* job, const std::string& to, DeathReason reason, Output& out);
  void expire(Time now, Job* job, Output& out);
  bool mark_dead(Job& job, DeathReason reason);
  void begin_attempts(Job& job);
  bool keeps_attempts(const Job& job) const;

  JobMoves& moves_;
  JobRemoval& removal_;
  TubeRegistry& registry_;
  TagRecords& records_;
  Expiries& expiries_;
  JobWaiters& job_waiters_;
  ServeQueue& serve_queue_;
  const bool& extended_;
  std::uint64_t dead_jobs_ = 0;
  std::uint64_t expired_jobs_ = 0;
};

}  // namespace tubed::engine
