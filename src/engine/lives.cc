#include "engine/lives.h"

#include <algorithm>

#include "engine/job_facts.h"
#include "tables/tube_metrics.h"

namespace tubed::engine {

namespace {

std::uint32_t attempts_of(const Job& job) {
  const std::uint32_t before = job.life() == nullptr ? 0 : job.life()->marks.reserves;
  return job.counters().reserves - before;
}

Seconds rounded(Duration delay) {
  const auto seconds = std::chrono::round<std::chrono::seconds>(delay).count();
  return {static_cast<std::uint32_t>(std::clamp<std::int64_t>(seconds, 1, UINT32_MAX))};
}

DeathReason why_dead(const Job& job) {
  const JobCounters counters = job.counters();
  const LifeRecord* life = job.life();
  const JobMarks marks = marks_of(job);
  const Policy* policy = job.tube->rules == nullptr ? nullptr : &job.tube->rules->policy;
  std::uint32_t max_attempts = policy == nullptr ? 0 : policy->max_attempts;
  if (life != nullptr && life->max_attempts) max_attempts = *life->max_attempts;
  const auto reached = [](std::uint32_t most, std::uint32_t count) {
    return most > 0 && count >= most;
  };
  if (reached(max_attempts, attempts_of(job))) return DeathReason::attempts;
  if (policy == nullptr) return DeathReason::none;
  if (reached(policy->max_timeouts, counters.timeouts - marks.timeouts)) {
    return DeathReason::timeouts;
  }
  if (reached(policy->max_releases, counters.releases - marks.releases)) {
    return DeathReason::releases;
  }
  return DeathReason::none;
}

}  // namespace

void Lives::come_back(Time now, Job* job, TimeSpan delay, Output& out) {
  expiries_.set(*job);
  if (has_expired(*job, now)) return expire(now, job, out);
  const TubeRules* rules = job->tube->rules.get();
  if (const DeathReason reason = why_dead(*job); reason != DeathReason::none) {
    ++dead_jobs_;
    ++job->tube->metrics->dead_count;
    const LifeRecord* life = job->life();
    std::string_view to = rules == nullptr ? kToBuried : std::string_view(rules->policy.dead);
    if (life != nullptr && !life->dead.empty()) to = life->dead;
    return retire(now, job, std::string(to), reason, out);
  }
  moves_.detach(job);
  if (delay.seconds.count > 0) {
    moves_.attach_delayed(job, now + delay);
  } else if (rules != nullptr && rules->policy.backoff.base.count > 0) {
    const Duration backoff = backoff_delay(rules->policy.backoff, job->id, attempts_of(*job));
    job->set_delay(rounded(backoff));
    moves_.attach_delayed(job, now + backoff);
  } else {
    moves_.attach_ready(job);
    serve_queue_.push(job->tube);
  }
  emit_placed(*job, out);
}

void Lives::take_back(Time now, Job* job, Output& out) {
  if (job->truncated()) return removal_.drop_truncated(now, job, out);
  if (governs(*job)) {
    if (keeps_attempts(*job)) ++records_.make_life(*job).marks.reserves;
    expiries_.set(*job);
    if (has_expired(*job, now)) return expire(now, job, out);
  }
  moves_.make_ready(job);
  emit_placed(*job, out);
}

// A dead or expired job goes to that place. A job that went to another tube before, and was not
// kicked or moved since, is buried: two policies cannot send it round in a circle.
void Lives::retire(Time now, Job* job, const std::string& to, DeathReason reason, Output& out) {
  Tube* from = job->tube;
  const JobId id = job->id;
  Retirement retirement{.job = id, .reason = reason, .to = to, .counters = job->counters()};
  if (to == kToNowhere) {
    out.retired(retirement);
    // The key of a job that has expired is free at once: the job did not run.
    if (reason == DeathReason::expired || job->tags() == nullptr) {
      removal_.erase(job, out);
    } else {
      removal_.erase_with_cooldown(now, job, out);
    }
    job_waiters_.job_has_ended(id, Notice::Kind::deleted, out);
    return registry_.remove_if_unwanted(now, from);
  }
  const bool was_dead = !marks_of(*job).dead_from.empty();
  const bool is_marked = mark_dead(*job, reason);
  const bool stays = to == kToBuried || to == from->name || was_dead || !is_marked;
  if (stays) retirement.to = kToBuried;
  out.retired(retirement);
  moves_.detach(job);
  if (stays) {
    ++job->history().counters.buries;
    ++from->bury_count;
    moves_.attach_buried(job);
    emit_placed(*job, out);
    return job_waiters_.job_has_ended(id, Notice::Kind::buried, out);
  }
  Tube* tube = registry_.find_or_add_for_job(now, to);
  begin_attempts(*job);
  Unit unit(out);
  const bool keeps_key = moves_.enter_tube(now, *job, tube, out);
  moves_.attach_ready(job);
  serve_queue_.push(tube);
  expiries_.set(*job);
  emit_placed(*job, out);
  out.fact(Moved{.id = id, .tube = tube->name, .keeps_key = keeps_key});
  unit.end();
  job_waiters_.job_has_ended(id, Notice::Kind::buried, out);
  registry_.remove_if_unwanted(now, from);
}

void Lives::expire(Time now, Job* job, Output& out) {
  ++expired_jobs_;
  ++job->tube->metrics->expired_count;
  const TubeRules* rules = job->tube->rules.get();
  const std::string to = rules == nullptr ? std::string(kToNowhere) : rules->policy.expired;
  retire(now, job, to, DeathReason::expired, out);
}

void Lives::end_due(Time now, std::uint32_t budget, Output& out) {
  for (; budget > 0 && expiries_.next() <= now; --budget) {
    Job* job = expiries_.take_next();
    const bool rests = job->state == JobState::ready || job->state == JobState::delayed;
    if (rests && !job->flushed()) expire(now, job, out);
  }
  if (expiries_.next() > now) expiries_.give_again();
}

// Returns false if the memory does not suffice for the mark.
bool Lives::mark_dead(Job& job, DeathReason reason) {
  if (!records_.has_memory_for_life(job)) return false;
  records_.make_life(job);
  JobMarks marks = marks_of(job);
  const std::string from(marks.dead_from.empty() ? std::string_view(job.tube->name)
                                                 : marks.dead_from);
  marks.dead_from = from;
  marks.reason = reason;
  records_.set_marks(job, marks);
  return true;
}

// The counters up to now no longer count as attempts.
void Lives::begin_attempts(Job& job) {
  JobMarks& marks = records_.make_life(job).marks;
  const JobCounters counters = job.counters();
  marks.reserves = counters.reserves;
  marks.timeouts = counters.timeouts;
  marks.releases = counters.releases;
}

// Returns false if nothing limits the attempts of the job. Also if the memory does not suffice for
// the record; the old attempts then continue.
bool Lives::keeps_attempts(const Job& job) const {
  if (job.life() != nullptr) return true;
  const TubeRules* rules = job.tube->rules.get();
  const bool is_limited =
      rules != nullptr && (rules->policy.limits_attempts() || rules->policy.backoff.base.count > 0);
  return is_limited && records_.has_memory_for_life(job);
}

void Lives::kick(Job* job, Output& out) {
  ++job->history().counters.kicks;
  if (governs(*job)) [[unlikely]]
    renew(*job);
  moves_.make_ready(job);
  emit_placed(*job, out);
}

bool Lives::renew(Job& job) {
  JobMarks before = marks_of(job);
  const bool was_dead = !before.dead_from.empty();
  before.dead_from = {};  // as it will be
  if (keeps_attempts(job)) {
    begin_attempts(job);
    JobMarks marks = marks_of(job);
    marks.dead_from = {};
    if (marks.reason != DeathReason::expired) marks.reason = DeathReason::none;
    records_.set_marks(job, marks);
  }
  expiries_.set(job);
  return was_dead || marks_of(job) != before;
}

}  // namespace tubed::engine
