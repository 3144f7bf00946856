// Model: the work of time, the queries of stats, and the state after a restart.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "tests/engine/model.h"

namespace tubed::engine {

// --- Time

void Model::advance(Time now, Output& out) {
  end_reservations(now, out);
  if (!closing_.empty()) continue_closing(now, out);
  end_delays(now, out);
  end_pauses(now);
  end_rates(now);
  end_lives(now, out);
  apply_patterns();
  serve_waiting(now, out);
  if (!makes_ready(now)) end_waits(now, out);
}

bool Model::makes_ready(Time now) const {
  for (const Job& job : jobs_) {
    if (is_held_open(job) && end_of_hold(job) <= now) return true;
    if (job.state == JobState::delayed && job.deadline <= now) return true;
  }
  for (const Tube& tube : tubes_) {
    if (tube.paused && tube.pause_until <= now) return true;
    if (tube.rate_until && *tube.rate_until <= now) return true;
  }
  return !closing_.empty() || has_complete() || has_late_tubes() || expiry_is_due(now) ||
         tubes_with_old_patterns_ > 0;
}

void Model::end_reservations(Time now, Output& out) {
  for (std::uint32_t done = 0; done < limits_.work_per_turn; ++done) {
    Job* first = nullptr;
    const Job* of_past = first_held(kPast);  // the others of the past come after it
    for (Job& job : jobs_) {
      if (!is_held_open(job) || end_of_hold(job) > now) continue;
      if (job.holder == kPast && &job != of_past) continue;
      if (first == nullptr || end_of_hold(job) < end_of_hold(*first)) first = &job;
    }
    if (first == nullptr) return;
    if (first->holder == kPast) {
      give_back(first->id, now, out);
      continue;
    }
    ++first->counters.timeouts;
    ++find_tube(first->tube)->timeout_count;
    ++timeouts_;
    give_back(first->id, now, out);
  }
}

void Model::end_delays(Time now, Output& out) {
  for (std::uint32_t done = 0; done < limits_.work_per_turn; ++done) {
    Job* first = nullptr;
    for (Job& job : jobs_) {
      if (job.state != JobState::delayed || job.deadline > now) continue;
      if (first == nullptr || job.deadline < first->deadline) first = &job;
    }
    if (first == nullptr) return;
    if (first->waits()) {
      end_delay(*first, out);
      continue;
    }
    first->state = first->told_place.state = JobState::ready;
    first->told_place.until = {};
  }
}

void Model::end_pauses(Time now) {
  for (std::uint32_t done = 0; done < limits_.work_per_turn; ++done) {
    Tube* first = nullptr;
    for (Tube& tube : tubes_) {
      if (!tube.paused || tube.pause_until > now) continue;
      const auto key = [](const Tube& each) { return std::tuple(each.pause_until, each.number); };
      if (first == nullptr || key(tube) < key(*first)) first = &tube;
    }
    if (first == nullptr) return;
    first->paused = false;
    first->pause = {};
    remove_if_unwanted(first->name);
  }
}

Time Model::wait_end(const Session& session) const {
  if (session.awaited != 0) return session.wait_until;
  const Job* held = first_held(session.id);
  return held == nullptr ? session.wait_until
                         : std::min(session.wait_until, held->deadline - std::chrono::seconds(1));
}

void Model::end_waits(Time now, Output& out) {
  for (std::uint32_t done = 0; done < limits_.work_per_turn; ++done) {
    Session* first = nullptr;
    for (Session& session : sessions_) {
      if (!waits(session.id) || wait_end(session) > now) continue;
      const auto key = [&](const Session& each) {
        return std::tuple(wait_end(each), each.arrival);
      };
      if (first == nullptr || key(session) < key(*first)) first = &session;
    }
    if (first == nullptr) return;
    first->waiting = false;
    const JobId awaited = std::exchange(first->awaited, 0);
    const bool soon = awaited == 0 && deadline_soon(first->id, now);
    const auto kind = soon ? Notice::Kind::deadline_soon : Notice::Kind::timed_out;
    out.notice({.session = first->id, .kind = kind, .job = awaited, .body = {}});
  }
}

Model::Deadlines Model::next_deadlines() const {
  Deadlines next;
  for (const Job& job : jobs_) {
    if (job.state == JobState::delayed) next.delay = std::min(next.delay, job.deadline);
    if (is_held_open(job)) next.ttr = std::min(next.ttr, end_of_hold(job));
  }
  for (const Tube& tube : tubes_) {
    if (tube.paused) next.pause = std::min(next.pause, tube.pause_until);
    if (tube.rate_until) next.pause = std::min(next.pause, *tube.rate_until);
  }
  for (const Session& session : sessions_) {
    if (waits(session.id)) next.ttr = std::min(next.ttr, wait_end(session));
  }
  next.delay = std::min(next.delay, next_expiry());
  next.closing =
      !closing_.empty() || has_complete() || has_late_tubes() || tubes_with_old_patterns_ > 0;
  return next;
}

// --- What is there

StateCounts Model::count_states(std::string_view tube) const {
  StateCounts counts;
  for (const Job& job : jobs_) {
    if (!tube.empty() && job.tube != tube) continue;
    if (job.state == JobState::reserved) ++counts.reserved;
    if (job.state == JobState::delayed) ++counts.delayed;
    if (job.held()) ++counts.held;
    if (job.state == JobState::buried) ++counts.buried;
    if (job.state != JobState::ready) continue;
    ++counts.ready;
    if (job.priority < 1024) ++counts.urgent;
  }
  return counts;
}

EngineInfo Model::info() const {
  EngineInfo info;
  info.jobs = count_states({});
  info.timeouts = timeouts_;
  info.total_jobs = total_jobs_;
  info.tubes = tubes_.size();
  for (const Session& session : sessions_) {
    if (session.closing) continue;
    ++info.sessions;
    if (session.producer) ++info.producers;
    if (session.worker) ++info.workers;
    if (session.waiting) ++info.waiting;
    if (session.awaited != 0) ++info.waiting_for_jobs;
    info.watches += session.watched.size();
  }
  info.memory_bytes = claimed_bytes_;
  for (const auto* jobs : {&jobs_, &flushed_}) {
    for (const Job& job : *jobs) info.memory_bytes += cost_of(job);
  }
  std::vector<Key> keys = keys_of_jobs();
  keys.insert(keys.end(), cooldowns_.begin(), cooldowns_.end());
  keys.insert(keys.end(), flushed_keys_.begin(), flushed_keys_.end());
  for (const Key& key : keys) info.memory_bytes += cost_of(key);
  info.memory_bytes += cost_of_tubes(keys);
  info.deduplicated_jobs = deduplicated_jobs_;
  info.dead_jobs = dead_jobs_;
  std::set<std::string> reserved_keys;
  for (const Job& job : jobs_) {
    if (job.state == JobState::reserved) reserved_keys.insert(job.concurrency_key);
  }
  reserved_keys.erase("");
  info.concurrency_keys = reserved_keys.size();
  info.expired_jobs = expired_jobs_;
  return info;
}

TubeInfo Model::tube_info(std::string_view name, Time now) const {
  const Tube& tube = *find_tube(name);
  TubeInfo info;
  info.name = tube.name;
  info.jobs = count_states(name);
  info.total_jobs = tube.total_jobs;
  for (const Session& session : sessions_) {
    const bool watches = std::count(session.watched.begin(), session.watched.end(), tube.name) > 0;
    if (session.used == name) ++info.using_count;
    if (watches) ++info.watching_count;
    if (watches && session.waiting) ++info.waiting_count;
  }
  info.delete_count = tube.delete_count;
  info.pause_count = tube.pause_count;
  info.pause = tube.pause;
  if (tube.paused && tube.pause_until > now) info.pause_left = tube.pause_until - now;
  info.reserve_count = tube.reserve_count;
  info.timeout_count = tube.timeout_count;
  info.bury_count = tube.bury_count;
  const std::vector<Job> ready = jobs_in(name, JobState::ready);
  const std::vector<Job> delayed = jobs_in(name, JobState::delayed);
  const std::vector<Job> buried = jobs_in(name, JobState::buried);
  if (!ready.empty()) {
    info.next_ready_id = ready.front().id;
    info.oldest_ready_age = now - ready.front().created;
  }
  if (!delayed.empty()) info.next_delayed_age = now - delayed.front().created;
  if (!buried.empty()) info.first_buried_age = now - buried.front().created;
  return info;
}

JobInfo Model::job_info(const Job& job, Time now) const {
  const bool timed = job.state == JobState::reserved || job.state == JobState::delayed;
  return {
      .id = job.id,
      .tube = job.tube,
      .state = job.state,
      .priority = job.priority,
      .age = now - job.created,
      .delay = job.delay.seconds,
      .ttr = job.ttr,
      .time_left = timed && job.deadline > now && !job.held() ? job.deadline - now : Duration(0),
      .counters = job.counters,
      .body_bytes = job.body.size(),
      .tags = job.tags(),
      .marks = job.all_marks()};
}

// --- Durable state

void Model::visit_durable(Time now, FactSink& sink) const {
  for (const Job& job : jobs_) {
    if (job.truncated) continue;
    Job resting = job;
    const bool delayed = resting.told_place.state == JobState::delayed && !job.waits();
    if (delayed && resting.told_place.until <= now) {
      resting.told_place.state = JobState::ready;  // its delay has ended, without a fact
      resting.told_place.until = {};
    }
    emit_added(resting, sink);
    const bool is_held = held_sink_ != nullptr && job.state == JobState::reserved;
    if (is_held) sink.fact(Held{.id = job.id, .until = job.deadline});
  }
  for (const auto& [name, value] : policy_values_) {
    const std::string_view key = policy_keys()[static_cast<std::size_t>(name.second)].name;
    sink.fact(PolicySet{.tube = name.first, .key = key, .value = value});
  }
  for (const Key& key : cooldowns_) {
    if (*key.until <= now) continue;
    sink.fact(Remembered{.id = key.id, .tube = key.tube, .key = key.name, .until = *key.until});
  }
  for (const Tube& tube : tubes_) {
    if (!tube.paused || tube.pause_until <= now) continue;
    sink.fact(Paused{.tube = tube.name, .duration = tube.pause, .until = tube.pause_until});
  }
  const auto has_last_id = [&](const Job& job) {
    return job.id == next_job_id_ - 1 && !job.truncated;
  };
  const bool last_is_gone = std::none_of(jobs_.begin(), jobs_.end(), has_last_id);
  if (next_job_id_ > 1 && last_is_gone) sink.fact(Removed{.id = next_job_id_ - 1});
}

std::uint64_t Model::durable_memory(Time now) const {
  std::vector<Key> keys = keys_of_jobs();
  for (const Key& key : cooldowns_) {
    if (*key.until > now) keys.push_back(key);
  }
  std::uint64_t bytes = cost_of_tubes(keys);
  for (const Key& key : keys) bytes += cost_of(key);
  for (Job job : jobs_) {
    if (job.truncated) continue;
    set_expiry(job, policy_to_be(job.tube));
    job.marks = job.told_marks;
    job.dead_from = job.told_dead_from;
    bytes += cost_of(job);
  }
  return bytes;
}

void Model::restart(Time now) {
  const std::vector<Tube> before = std::exchange(tubes_, {});
  hold_until_ = kNever;
  const Limits limits = std::exchange(limits_, Limits());  // an accepted job outweighs a limit
  sessions_.clear();
  closing_.clear();
  flushed_.clear();
  releasing_.clear();
  std::erase_if(jobs_, [](const Job& job) { return job.truncated; });
  claimed_bytes_ = known_sessions_ = 0;
  tubes_with_old_patterns_ = 0;
  dead_jobs_ = expired_jobs_ = 0;
  timeouts_ = total_jobs_ = deduplicated_jobs_ = next_tube_number_ = next_bury_order_ = 0;
  flushed_keys_.clear();
  std::erase_if(cooldowns_, [now](const Key& key) { return *key.until <= now; });
  find_or_add_tube(kDefaultTube);
  for (Job& job : jobs_) {
    find_or_add_tube(job.tube);
    const bool is_held = held_sink_ != nullptr && job.state == JobState::reserved;
    const Time held_until = job.deadline;
    job.state = job.told_place.state;
    job.counters = job.told_counters;
    job.deadline = job.told_place.until;
    job.bury_order = job.told_place.bury_order;
    job.marks = job.told_marks;
    job.dead_from = job.told_dead_from;
    job.after_done = job.told_after_done;
    job.hold_order = next_hold_order_++;
    job.will_expire = false;
    set_expiry(job);
    if (job.state == JobState::delayed && job.deadline <= now && !job.waits()) {
      job.state = job.told_place.state = JobState::ready;
      job.told_place.until = {};
    }
    if (job.state == JobState::buried) {
      next_bury_order_ = std::max(next_bury_order_, job.bury_order + 1);
    }
    if (!is_held) continue;
    job.state = JobState::reserved;
    job.holder = kPast;
    job.deadline = held_until;
    job.reserve_order = next_reserve_order_++;
    ++job.counters.reserves;
  }
  for (const Tube& tube : before) {
    if (!tube.paused || tube.pause_until <= now) continue;
    Tube& again = *find_or_add_tube(tube.name);
    again.paused = true;
    again.pause = tube.pause;
    again.pause_until = tube.pause_until;
  }
  limits_ = limits;
  complete_groups();
}

}  // namespace tubed::engine
