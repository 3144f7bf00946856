// Model: the policies of tubes, and the lives of jobs.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "tests/engine/model.h"

namespace tubed::engine {

JobMarks Model::Job::all_marks() const {
  JobMarks all = marks;
  all.dead_from = dead_from;
  all.after_done = after_done;
  return all;
}

JobMarks Model::Job::all_told_marks() const {
  JobMarks all = told_marks;
  all.dead_from = told_dead_from;
  all.after_done = told_after_done;
  return all;
}

// --- Policies

std::optional<Policy> Model::policy_of(const std::string& tube) const {
  const Tube* found = find_tube(tube);
  return found == nullptr ? policy_to_be(tube) : found->policy;
}

std::optional<Policy> Model::policy_to_be(const std::string& tube) const {
  PolicyValues values;
  bool any = false;
  for (const TubePattern& pattern : patterns_) {
    if (!matches(pattern, tube)) continue;
    values = pattern.values;
    any = true;
    break;
  }
  for (const auto& [name, value] : policy_values_) {
    if (name.first != tube) continue;
    values[static_cast<std::size_t>(name.second)] = value;
    any = true;
  }
  return any ? std::optional(tubed::policy_of(values)) : std::nullopt;
}

bool Model::set_policy(Time now, const std::string& tube, PolicyKey key, const std::string& value,
                       Output& out) {
  const bool is_set = policy_values_.contains({tube, key});
  if (value == kNoPolicyValue && !is_set) return true;
  if (!is_set && policy_values_.size() >= limits_.policies) return false;
  const std::string_view name = policy_keys()[static_cast<std::size_t>(key)].name;
  out.fact(PolicySet{.tube = tube, .key = name, .value = value});
  if (value == kNoPolicyValue) {
    policy_values_.erase({tube, key});
  } else {
    policy_values_[{tube, key}] = value;
  }
  if (Tube* found = find_tube(tube); found != nullptr) begin_policy(*found);
  serve_waiting(now, out);
  remove_if_unwanted(tube);
  return true;
}

void Model::set_patterns(Time now, std::vector<TubePattern> patterns, Output& out) {
  if (patterns.empty() && patterns_.empty()) return;
  patterns_ = std::move(patterns);
  tubes_with_old_patterns_ = tubes_.size();
  apply_patterns();
  serve_waiting(now, out);
}

void Model::apply_patterns() {
  for (std::uint32_t done = 0; done < limits_.work_per_turn; ++done) {
    if (tubes_with_old_patterns_ == 0) return;
    tubes_with_old_patterns_ = std::min(tubes_with_old_patterns_, tubes_.size()) - 1;
    Tube& tube = tubes_[tubes_with_old_patterns_];
    begin_policy(tube);
    remove_if_unwanted(tube.name);
  }
}

// As many jobs with its key are reserved as the smallest limit of one of them allows. Flushed jobs
// that are not removed yet limit as well.
bool Model::is_blocked(const Job& job) const {
  if (job.concurrency_key.empty()) return false;
  std::uint64_t limit = UINT64_MAX;
  std::uint64_t reserved = 0;
  for (const auto* jobs : {&jobs_, &flushed_}) {
    for (const Job& each : *jobs) {
      if (each.concurrency_key != job.concurrency_key) continue;
      limit = std::min<std::uint64_t>(limit, each.concurrency_limit);
      if (jobs == &jobs_ && each.state == JobState::reserved) ++reserved;
    }
  }
  return reserved >= limit;
}

// --- Groups

// Flushed jobs that are not removed yet are members.
bool Model::has_members(const std::string& group) const {
  const auto is_member = [&](const Job& job) { return job.group == group; };
  return std::any_of(jobs_.begin(), jobs_.end(), is_member) ||
         std::any_of(flushed_.begin(), flushed_.end(), is_member);
}

void Model::end_delay(Job& job, Output& out) {
  job.state = JobState::ready;
  if (has_members(job.after)) {
    job.state = JobState::delayed;
    job.deadline = kNever;
    job.hold_order = next_hold_order_++;
  }
  emit_placed(job, out);
}

// The held jobs of each group that has lost its last member are to be released.
void Model::complete_groups() {
  std::map<std::pair<std::string, std::uint64_t>, JobId> complete;
  for (const auto* jobs : {&jobs_, &flushed_}) {
    for (const Job& job : *jobs) {
      const bool known = std::count(releasing_.begin(), releasing_.end(), job.id) > 0;
      if (!job.held() || !job.waits() || known || has_members(job.after)) continue;
      complete[{job.after, job.hold_order}] = job.id;
    }
  }
  for (const auto& [order, id] : complete) releasing_.push_back(id);
}

bool Model::has_complete() const {
  const auto is_held = [&](const Job& job) {
    return job.held() && std::count(releasing_.begin(), releasing_.end(), job.id) > 0;
  };
  return std::any_of(jobs_.begin(), jobs_.end(), is_held) ||
         std::any_of(flushed_.begin(), flushed_.end(), is_held);
}

void Model::release_held(Output& out) {
  for (std::uint32_t done = 0; done < limits_.work_per_turn && !releasing_.empty();) {
    const JobId id = releasing_.front();
    releasing_.erase(releasing_.begin());
    Job* job = find_any_job(id);
    if (job != nullptr && job->held()) {
      make_ready(*job, out);
      ++done;
    }
    for (Job& flushed : flushed_) {
      if (flushed.id != id) continue;
      flushed.after_done = true;
      ++done;
    }
  }
}

std::optional<GroupInfo> Model::group_info(const std::string& name) const {
  GroupInfo info;
  bool waited_for = false;
  for (const auto* jobs : {&jobs_, &flushed_}) {
    for (const Job& job : *jobs) {
      if (job.group == name) {
        if (job.state == JobState::ready) ++info.members.ready;
        if (job.state == JobState::delayed) ++info.members.delayed;
        if (job.state == JobState::reserved) ++info.members.reserved;
        if (job.state == JobState::buried) ++info.members.buried;
      }
      const bool released = std::count(releasing_.begin(), releasing_.end(), job.id) > 0;
      if (job.after != name || !job.held() || !job.waits() || released) continue;
      ++info.held;
      waited_for = true;
    }
  }
  if (info.members.total() == 0 && !waited_for) return std::nullopt;
  return info;
}

// With another rate, a tube may give all jobs of it at once.
void Model::begin_policy(Tube& tube) {
  const auto policy = tube.policy = policy_to_be(tube.name);
  const Policy::Rate rate = policy ? policy->rate : Policy::Rate();
  if (std::exchange(tube.rate, rate) == rate) return;
  tube.rate_until.reset();
  tube.credited.reset();
}

bool Model::has_late_tubes() const {
  return std::any_of(tubes_.begin(), tubes_.end(), [](const Tube& tube) { return tube.late; });
}

bool Model::is_withheld(const Tube& tube) const {
  const auto policy = policy_of(tube.name);
  const std::uint64_t most = policy ? policy->max_reserved : 0;
  const bool held = most > 0 && count_states(tube.name).reserved >= most;
  return tube.late || held || tube.rate_until.has_value();
}

bool Model::is_full(const std::string& tube) const {
  const auto policy = policy_of(tube);
  return policy && policy->max_jobs > 0 && count_states(tube).total() >= policy->max_jobs &&
         find_tube(tube) != nullptr;
}

// The tube gives a job, which takes its share of the time. With less credit than a share the tube
// gives none until it has a share again.
void Model::take_credit(Tube& tube, Time now) {
  const auto policy = policy_of(tube.name);
  if (!policy || policy->rate.count == 0) return;
  const Duration share = Duration(policy->rate.seconds) / policy->rate.count;
  const Duration most = share * policy->rate.count;
  tube.credit = tube.credited ? tube.credit + (now - *tube.credited) : most;
  tube.credit = std::min(tube.credit, most) - share;
  tube.credited = now;
  tube.rate_until.reset();
  if (tube.credit < share) tube.rate_until = now + (share - tube.credit);
}

void Model::end_rates(Time now) {
  for (std::uint32_t done = 0; done < limits_.work_per_turn; ++done) {
    Tube* first = nullptr;
    for (Tube& tube : tubes_) {
      if (!tube.rate_until || *tube.rate_until > now) continue;
      const auto key = [](const Tube& each) { return std::tuple(*each.rate_until, each.number); };
      if (first == nullptr || key(tube) < key(*first)) first = &tube;
    }
    if (first == nullptr) return;
    first->rate_until.reset();
  }
}

void Model::apply_ttr(Job& job) const {
  const auto policy = policy_of(job.tube);
  if (job.ttr.count == 0 && policy) job.ttr = policy->default_ttr;
  job.ttr.count = std::max(job.ttr.count, 1U);
  if (!policy || job.time_to_run() >= Duration(policy->min_ttr)) return;
  job.ttr = policy->min_ttr;
  job.ttr_short_by_ms = 0;
}

// --- Lives

void Model::set_expiry(Job& job) const {
  set_expiry(job, policy_of(job.tube));
}

void Model::set_expiry(Job& job, const std::optional<Policy>& policy) {
  Seconds ttl = policy ? policy->ttl : Seconds{};
  if (job.time_to_live) ttl = *job.time_to_live;
  const bool expires = ttl.count > 0 && job.marks.reason != DeathReason::expired;
  job.expires = expires ? job.created + ttl : kNever;
  job.will_expire = expires;
}

void Model::come_back(JobId id, TimeSpan delay, Time now, Output& out) {
  Job& job = *find_any_job(id);
  set_expiry(job);
  if (job.expires <= now) return expire(id, now, out);
  const auto policy = policy_of(job.tube);
  if (const DeathReason reason = why_dead(job); reason != DeathReason::none) {
    ++dead_jobs_;
    std::string to = policy ? policy->dead : std::string(kToBuried);
    if (!job.dead.empty()) to = job.dead;
    return retire(id, to, reason, now, out);
  }
  job.state = JobState::ready;
  Duration wait = delay;
  if (wait == Duration(0) && policy && policy->backoff.base.count > 0) {
    wait = backoff_delay(policy->backoff, id, job.counters.reserves - job.marks.reserves);
    job.delay = {{static_cast<std::uint32_t>(
        std::max<std::int64_t>(std::chrono::round<std::chrono::seconds>(wait).count(), 1))}};
  }
  if (wait > Duration::zero()) {
    job.state = JobState::delayed;
    job.deadline = now + wait;
  }
  emit_placed(job, out);
}

DeathReason Model::why_dead(const Job& job) const {
  const Policy policy = policy_of(job.tube).value_or(tubed::policy_of({}));
  const auto reached = [](std::uint32_t most, std::uint32_t now, std::uint32_t before) {
    return most > 0 && now - before >= most;
  };
  const std::uint32_t attempts = job.max_attempts.value_or(policy.max_attempts);
  if (reached(attempts, job.counters.reserves, job.marks.reserves)) return DeathReason::attempts;
  if (reached(policy.max_timeouts, job.counters.timeouts, job.marks.timeouts)) {
    return DeathReason::timeouts;
  }
  if (reached(policy.max_releases, job.counters.releases, job.marks.releases)) {
    return DeathReason::releases;
  }
  return DeathReason::none;
}

void Model::expire(JobId id, Time now, Output& out) {
  ++expired_jobs_;
  const auto policy = policy_of(find_job(id)->tube);
  retire(id, policy ? policy->expired : std::string(kToNowhere), DeathReason::expired, now, out);
}

void Model::retire(JobId id, const std::string& to, DeathReason reason, Time now, Output& out) {
  Job& job = *find_job(id);
  const std::string from = job.tube;
  if (to == kToNowhere) {
    if (reason == DeathReason::expired) job.cooldown = {};
    --find_tube(from)->delete_count;  // no client deletes it
    return erase(id, now, out);
  }
  std::uint64_t bytes = from.size();
  if (!job.has_tags()) bytes += overhead_.tags;
  if (!job.has_life()) bytes += overhead_.life;
  const bool has_memory = info().memory_bytes + bytes <= limits_.job_memory_bytes;
  const bool was_dead = !job.dead_from.empty();
  if (has_memory) {
    job.marks.reason = reason;
    if (!was_dead) job.dead_from = from;
  }
  if (to == kToBuried || to == from || was_dead || !has_memory) {
    ++job.counters.buries;
    job.state = JobState::buried;
    job.bury_order = next_bury_order_++;
    ++find_tube(from)->bury_count;
    emit_placed(job, out);
    return answer_job_waits(out);
  }
  const Limits limits = std::exchange(limits_, Limits());  // a dead tube outweighs a limit
  find_or_add_tube(to);
  limits_ = limits;
  begin_attempts(job);
  const bool keeps_key = change_tube(now, job, to, out);
  job.state = JobState::ready;
  set_expiry(job);
  emit_placed(job, out);
  out.fact(Moved{.id = id, .tube = to, .keeps_key = keeps_key});
  // A client that waits for its end is answered that it is buried.
  const JobState state = std::exchange(job.state, JobState::buried);
  answer_job_waits(out);
  job.state = state;
  remove_if_unwanted(from);
}

void Model::begin_attempts(Job& job) {
  job.marks.reserves = job.counters.reserves;
  job.marks.timeouts = job.counters.timeouts;
  job.marks.releases = job.counters.releases;
}

// After a kick or a move. True: its marks are others.
bool Model::renew(Job& job) const {
  const JobMarks before = job.marks;
  const bool was_dead = !job.dead_from.empty();
  const auto policy = policy_of(job.tube);
  const bool is_limited = policy && (policy->limits_attempts() || policy->backoff.base.count > 0);
  std::uint64_t bytes = job.tube.size() + overhead_.life + (job.has_tags() ? 0 : overhead_.tags);
  const bool has_memory = info().memory_bytes + bytes <= limits_.job_memory_bytes;
  if (job.has_life() || (is_limited && has_memory)) {
    begin_attempts(job);
    job.dead_from.clear();
    if (job.marks.reason != DeathReason::expired) job.marks.reason = DeathReason::none;
  }
  set_expiry(job);
  return was_dead || job.marks != before;
}

// True: it keeps its key.
bool Model::change_tube(Time now, Job& job, const std::string& tube, Output& out) {
  if (job.tube == tube) return false;
  bool keeps_key = false;
  if (!job.key.empty()) {
    const auto has_key = [&](const Job& each) {
      return each.tube == tube && each.key == job.key && !each.truncated;
    };
    const bool taken = std::any_of(jobs_.begin(), jobs_.end(), has_key);
    keeps_key = !taken && cooling(tube, job.key, now, out) == 0;
    if (!keeps_key) {
      job.key.clear();
      job.cooldown = {};
    }
  }
  job.tube = tube;
  return keeps_key;
}

Time Model::next_expiry() const {
  Time next = kNever;
  for (const auto* jobs : {&jobs_, &flushed_}) {
    for (const Job& job : *jobs) {
      if (job.will_expire) next = std::min(next, job.expires);
    }
  }
  return next;
}

void Model::end_lives(Time now, Output& out) {
  for (std::uint32_t done = 0; done < limits_.work_per_turn; ++done) {
    Job* first = nullptr;
    for (auto* jobs : {&jobs_, &flushed_}) {
      for (Job& job : *jobs) {
        if (!job.will_expire || job.expires > now) continue;
        const auto key = [](const Job& each) { return std::tuple(each.expires, each.id); };
        if (first == nullptr || key(job) < key(*first)) first = &job;
      }
    }
    if (first == nullptr) break;
    first->will_expire = false;
    const bool rests = first->state == JobState::ready || first->state == JobState::delayed;
    if (rests && find_job(first->id) == first) expire(first->id, now, out);
  }
  if (expiry_is_due(now)) return;
  for (Tube& tube : tubes_) tube.late = false;
}

}  // namespace tubed::engine
