// Engine: the policies of tubes, and the lives of jobs that they or tags limit.
//
// A job is governed if its tube has a policy (TubeRules) or it has a LifeRecord of its own. When a
// governed job comes back, by a release, a timeout or a closed session, come_back() decides, in
// this order: it has expired; it has been tried as often as it may, and is dead; it is delayed by
// the backoff; it is ready. retire() then does what the policy says about a dead or expired job,
// and emits the same facts as a command that does that: a log needs no policy to replay them. For
// test mode it reports the retirement before the facts.
//
// When jobs expire: engine/expiries.h.
#include <algorithm>
#include <utility>

#include "engine/engine.h"

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

}  // namespace

// --- Policies

bool Engine::set_policy(Time now, std::string_view name, PolicyKey key, std::string_view value,
                        Output& out) {
  const bool is_set = policies_.is_set(name, key);
  if (value == kNoPolicyValue && !is_set) return true;
  if (!is_set && policies_.count() >= limits_.policies) return false;
  const std::string_view key_name = policy_keys()[static_cast<std::size_t>(key)].name;
  out.fact(PolicySet{.tube = name, .key = key_name, .value = value});
  policies_.set(name, key, value == kNoPolicyValue ? std::string_view() : value);
  if (Tube* tube = tubes_.find(name); tube != nullptr) {
    apply_policy(tube);
    serve_waiting(now, out);
    remove_if_unwanted(now, tube);
  }
  return true;
}

void Engine::set_patterns(Time now, std::vector<TubePattern> patterns, Output& out) {
  if (patterns.empty() && policies_.patterns().empty()) return;
  policies_.set_patterns(std::move(patterns));
  extended_ = true;
  tubes_with_old_patterns_ = tubes_.size();
  apply_patterns(now);
  serve_waiting(now, out);
}

// From the last tube of the list to the first: when a tube is removed, the last takes its place.
// Such a tube may come twice, which changes nothing.
void Engine::apply_patterns(Time now) {
  std::uint32_t budget = limits_.work_per_turn;
  for (; budget > 0 && tubes_with_old_patterns_ > 0; --budget) {
    tubes_with_old_patterns_ = std::min(tubes_with_old_patterns_, tubes_.size()) - 1;
    Tube* tube = tubes_.all()[tubes_with_old_patterns_].get();
    apply_policy(tube);
    remove_if_unwanted(now, tube);
  }
}

// The policy of the tube, or its name, is new.
void Engine::apply_policy(Tube* tube) {
  const std::unique_ptr<Policy> policy = policies_.of(tube->name);
  if (policy != nullptr) extended_ = true;
  reservation_limits_.apply(tube, policy.get());
}

// --- Coming back

void Engine::come_back(Time now, Job* job, TimeSpan delay, Output& out) {
  expiries_.set(*job);
  if (has_expired(*job, now)) return expire(now, job, out);
  const TubeRules* rules = job->tube->rules.get();
  if (const DeathReason reason = why_dead(*job); reason != DeathReason::none) {
    ++counts_.dead_jobs;
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

// A job that its client never got: neither its attempts nor a backoff decide about it.
void Engine::take_back(Time now, Job* job, Output& out) {
  if (job->truncated()) return drop_truncated(now, job, out);
  if (is_governed(*job)) {
    if (keeps_attempts(*job)) ++tag_records_.make_life(*job).marks.reserves;
    expiries_.set(*job);
    if (has_expired(*job, now)) return expire(now, job, out);
  }
  moves_.make_ready(job);
  emit_placed(*job, out);
}

void Engine::take_back(SessionId id, Time now, Output& out) {
  Session& session = sessions_.at(id);
  while (!session.held.empty()) take_back(now, session.held.top(), out);
  serve_waiting(now, out);
}

void Engine::take_back(SessionId session, Time now, JobId id, Output& out) {
  if (!tube_of_held(session, id)) return;
  take_back(now, jobs_.find(id), out);
  serve_waiting(now, out);
}

DeathReason Engine::why_dead(const Job& job) {
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

// A dead or expired job goes to that place. A job that went to another tube before, and was not
// kicked or moved since, is buried: two policies cannot send it round in a circle.
void Engine::retire(Time now, Job* job, const std::string& to, DeathReason reason, Output& out) {
  Tube* from = job->tube;
  const JobId id = job->id;
  Retirement retirement{.job = id, .reason = reason, .to = to, .counters = job->counters()};
  if (to == kToNowhere) {
    out.retired(retirement);
    // The key of a job that has expired is free at once: the job did not run.
    if (reason == DeathReason::expired || job->tags() == nullptr) {
      erase_job(job, out);
    } else {
      erase_with_cooldown(now, job, out);
    }
    job_waiters_.job_has_ended(id, Notice::Kind::deleted, out);
    return remove_if_unwanted(now, from);
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
  Tube* tube = tubes_.find(to);
  if (tube == nullptr) tube = add_tube(now, to);  // beyond the limit if need be
  begin_attempts(*job);
  Unit unit(out);
  const bool keeps_key = enter_tube(now, *job, tube, out);
  moves_.attach_ready(job);
  serve_queue_.push(tube);
  expiries_.set(*job);
  emit_placed(*job, out);
  out.fact(Moved{.id = id, .tube = tube->name, .keeps_key = keeps_key});
  unit.end();
  job_waiters_.job_has_ended(id, Notice::Kind::buried, out);
  remove_if_unwanted(now, from);
}

// --- Expiry

void Engine::expire(Time now, Job* job, Output& out) {
  ++counts_.expired_jobs;
  ++job->tube->metrics->expired_count;
  const TubeRules* rules = job->tube->rules.get();
  const std::string to = rules == nullptr ? std::string(kToNowhere) : rules->policy.expired;
  retire(now, job, to, DeathReason::expired, out);
}

void Engine::end_lives(Time now, Output& out) {
  std::uint32_t budget = limits_.work_per_turn;
  for (; budget > 0 && expiry_is_due(now); --budget) {
    Job* job = expiries_.take_next();
    const bool rests = job->state == JobState::ready || job->state == JobState::delayed;
    if (rests && !job->flushed()) expire(now, job, out);
  }
  if (!expiry_is_due(now)) expiries_.give_again();
}

// --- Marks

// False: there is no memory for the mark.
bool Engine::mark_dead(Job& job, DeathReason reason) {
  if (!tag_records_.has_memory_for_life(job)) return false;
  tag_records_.make_life(job);
  JobMarks marks = marks_of(job);
  const std::string from(marks.dead_from.empty() ? std::string_view(job.tube->name)
                                                 : marks.dead_from);
  marks.dead_from = from;
  marks.reason = reason;
  tag_records_.set_marks(job, marks);
  return true;
}

// The counters up to now no longer count as attempts.
void Engine::begin_attempts(Job& job) {
  JobMarks& marks = tag_records_.make_life(job).marks;
  const JobCounters counters = job.counters();
  marks.reserves = counters.reserves;
  marks.timeouts = counters.timeouts;
  marks.releases = counters.releases;
}

// False: nothing limits the attempts of the job, or there is no memory for the record, and the old
// attempts go on.
bool Engine::keeps_attempts(const Job& job) const {
  if (job.life() != nullptr) return true;
  const TubeRules* rules = job.tube->rules.get();
  const bool is_limited =
      rules != nullptr && (rules->policy.limits_attempts() || rules->policy.backoff.base.count > 0);
  return is_limited && tag_records_.has_memory_for_life(job);
}

// A client kicks or moves the job, which may be in another tube now. True: its marks have changed.
bool Engine::renew_life(Job& job) {
  JobMarks before = marks_of(job);
  const bool was_dead = !before.dead_from.empty();
  before.dead_from = {};  // as it will be
  if (keeps_attempts(job)) {
    begin_attempts(job);
    JobMarks marks = marks_of(job);
    marks.dead_from = {};
    if (marks.reason != DeathReason::expired) marks.reason = DeathReason::none;
    tag_records_.set_marks(job, marks);
  }
  expiries_.set(job);
  return was_dead || marks_of(job) != before;
}

void Engine::end_replay() {
  if (groups_.deferred()) groups_.end_deferral();
  moves_.order_buried();
  if (!policies_.any() && expiries_.empty()) return;
  std::vector<Job*> jobs;
  jobs_.for_each([&](const Job& job) {
    if (!job.flushed() && is_governed(job)) jobs.push_back(jobs_.find(job.id));
  });
  for (Job* job : jobs) expiries_.set(*job);
}

}  // namespace tubed::engine
