// Engine: reserving and waiting.
#include "engine/engine.h"

namespace tubed::engine {

namespace {

Time end_of(Wait wait, Time now) {
  return wait.limit == Wait::kForever ? kNever : now + wait.limit;
}

}  // namespace

std::optional<Notice> Engine::reserve(SessionId id, Time now, Wait wait) {
  Session& session = parts_.sessions.at(id);
  TUBED_ASSERT(!session.waiting);
  mark_worker(session);
  if (Job* job = choice_.best(session, now); job != nullptr) {
    if (session.weighted()) [[unlikely]]
      choice_.charge(session, job->tube);
    return dispatcher_.give(session, now, job);
  }
  // A session does not wait during the last second of a TTR of a job that it holds.
  if (!session.held.empty() && session.held.top_key().deadline - kSafetyMargin <= now) {
    return Notice{.session = id, .kind = Notice::Kind::deadline_soon, .job = 0, .body = {}};
  }
  if (wait.limit <= Duration::zero()) {
    return Notice{.session = id, .kind = Notice::Kind::timed_out, .job = 0, .body = {}};
  }
  dispatcher_.begin_wait(session, end_of(wait, now));
  return {};
}

std::optional<JobBody> Engine::reserve_ready(SessionId id, Time now) {
  Session& session = parts_.sessions.at(id);
  mark_worker(session);
  Job* job = choice_.best(session, now);
  if (job == nullptr) return std::nullopt;
  if (session.weighted()) choice_.charge(session, job->tube);
  dispatcher_.reserve(session, now, job);
  return JobBody{.id = job->id, .body = job->body};
}

std::optional<JobBody> Engine::reserve_job(SessionId id, Time now, JobId job_id) {
  Session& session = parts_.sessions.at(id);
  Job* job = parts_.jobs.find_present(job_id);
  if (job == nullptr || job->state == JobState::reserved) return std::nullopt;
  // A buried job has no time to live.
  const bool expires = job->state != JobState::buried && has_expired(*job, now);
  const bool tagged = job->tags() != nullptr && (expires || is_blocked(*job));
  if (!choice_.is_giving() || job->tube->withheld != 0 || job->held() || tagged) [[unlikely]]
    return std::nullopt;
  mark_worker(session);  // Compat: only a session that got its job
  dispatcher_.reserve(session, now, job);
  return JobBody{.id = job->id, .body = job->body};
}

void Engine::mark_worker(Session& session) {
  if (!std::exchange(session.worker, true)) ++parts_.counts.workers;
}

void Engine::set_giving(bool giving, Time now, Output& out) {
  parts_.extended = true;
  choice_.set_giving(giving);
  if (!giving) return;
  // Nothing was queued meanwhile.
  IndexSet::for_each_common(
      parts_.tubes.giving(), parts_.tubes.giving(),
      [this](std::uint32_t index) { parts_.serve_queue.push(parts_.tubes.at(index)); });
  dispatcher_.serve_waiting(now, out);
}

void Engine::cancel_wait(SessionId id) {
  Session& session = parts_.sessions.at(id);
  TUBED_ASSERT(session.waiting);
  dispatcher_.end_wait(session);
}

std::optional<Notice> Engine::wait_for_job(SessionId id, Time now, JobId job_id, Wait wait) {
  Session& session = parts_.sessions.at(id);
  TUBED_ASSERT(!session.waiting);
  const auto answer = [&](Notice::Kind kind) {
    return Notice{.session = id, .kind = kind, .job = job_id, .body = {}};
  };
  const Job* job = parts_.jobs.find_present(job_id);
  if (job == nullptr) return answer(Notice::Kind::not_found);
  if (job->state == JobState::buried) return answer(Notice::Kind::buried);
  if (wait.limit <= Duration::zero()) return answer(Notice::Kind::timed_out);
  dispatcher_.begin_wait_for(session, job_id, end_of(wait, now));
  return {};
}

}  // namespace tubed::engine
