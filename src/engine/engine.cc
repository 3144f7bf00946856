// A command that changes a job moves it (engine/job_moves.h). A job that then rests is
// emitted as a fact. The command ends with serve_waiting(), so its own change is complete before
// the queue changes again. A command that drops what a tube was needed for calls
// TubeRegistry::remove_if_unwanted().
#include "engine/engine.h"

#include <algorithm>

#include "engine/job_facts.h"

namespace tubed::engine {

// --- Sessions

SessionId Engine::open() {
  if (parts_.groups.deferred() || parts_.moves.is_in_disorder()) [[unlikely]]
    end_replay();
  Session& session = parts_.sessions.open();
  session.used = parts_.registry.default_tube();
  ++parts_.registry.default_tube()->using_count;
  parts_.watch_lists.begin(session);
  ++parts_.counts.sessions;
  return session.id;
}

void Engine::close(SessionId id, Time now, Output& out) {
  Session& session = parts_.sessions.at(id);
  if (session.waiting) dispatcher_.end_wait(session);
  parts_.sessions.close(session);
  --parts_.counts.sessions;
  if (session.producer) --parts_.counts.producers;
  if (session.worker) --parts_.counts.workers;
  --session.used->using_count;
  parts_.registry.remove_if_unwanted(now, session.used);
  parts_.watch_lists.clear(session, now);
  parts_.deadlines.update(session);
  due_work_.continue_closing(now, out);
  dispatcher_.serve_waiting(now, out);
}

void Engine::take_back(SessionId id, Time now, Output& out) {
  Session& session = parts_.sessions.at(id);
  while (!session.held.empty()) parts_.lives.take_back(now, session.held.top(), out);
  dispatcher_.serve_waiting(now, out);
}

void Engine::take_back(SessionId session, Time now, JobId id, Output& out) {
  if (!queries_.tube_of_held(session, id)) return;
  parts_.lives.take_back(now, parts_.jobs.find(id), out);
  dispatcher_.serve_waiting(now, out);
}

// --- Tubes

bool Engine::use(SessionId id, Time now, std::string_view name) {
  Session& session = parts_.sessions.at(id);
  Tube* tube = parts_.registry.find_or_add(now, name);
  if (tube == nullptr) return false;
  ++tube->using_count;
  --session.used->using_count;
  parts_.registry.remove_if_unwanted(now, session.used);
  session.used = tube;
  return true;
}

bool Engine::watch(SessionId id, Time now, std::string_view name, std::uint32_t weight) {
  return parts_.watch_lists.add(parts_.sessions.at(id), now, name, weight);
}

bool Engine::ignore(SessionId id, Time now, std::string_view name) {
  return parts_.watch_lists.remove(parts_.sessions.at(id), now, name);
}

bool Engine::pause(Time now, std::string_view name, TimeSpan duration, Output& out) {
  Tube* tube = parts_.tubes.find(name);
  if (tube == nullptr) return false;
  ++tube->pause_count;
  tube->pause = duration.seconds;
  tube->pause_until = now + duration;
  const bool paused = duration.seconds.count > 0;
  parts_.registry.set_paused(tube, paused);
  parts_.tubes.update_giving(tube);
  out.fact(Paused{.tube = tube->name, .duration = tube->pause, .until = tube->pause_until});
  parts_.serve_queue.push(tube);
  dispatcher_.serve_waiting(now, out);
  if (!paused) parts_.registry.remove_if_unwanted(now, tube);
  return true;
}

// --- Policies

bool Engine::set_policy(Time now, std::string_view name, PolicyKey key, std::string_view value,
                        Output& out) {
  const bool is_set = parts_.policies.is_set(name, key);
  if (value == kNoPolicyValue && !is_set) return true;
  if (!is_set && parts_.policies.count() >= parts_.limits.policies) return false;
  const std::string_view key_name = policy_keys()[static_cast<std::size_t>(key)].name;
  out.fact(PolicySet{.tube = name, .key = key_name, .value = value});
  parts_.policies.set(name, key, value == kNoPolicyValue ? std::string_view() : value);
  if (Tube* tube = parts_.tubes.find(name); tube != nullptr) {
    parts_.registry.apply_policy(tube);
    dispatcher_.serve_waiting(now, out);
    parts_.registry.remove_if_unwanted(now, tube);
  }
  return true;
}

void Engine::set_patterns(Time now, std::vector<TubePattern> patterns, Output& out) {
  if (patterns.empty() && parts_.policies.patterns().empty()) return;
  parts_.policies.set_patterns(std::move(patterns));
  parts_.extended = true;
  parts_.registry.begin_patterns();
  parts_.registry.apply_patterns(now, parts_.limits.work_per_turn);
  dispatcher_.serve_waiting(now, out);
}

// --- Jobs

void Engine::mark_producer(SessionId id) {
  Session& session = parts_.sessions.at(id);
  if (!std::exchange(session.producer, true)) ++parts_.counts.producers;
}

[[gnu::always_inline]] inline Job* Engine::insert(Tube* tube, Time now, PutRequest& request) {
  Job* job = parts_.jobs.add(parts_.jobs.next_id());
  job->body = std::move(request.body);
  job->tube = tube;
  job->created = now;
  job->epoch = job->tube->epoch;
  job->priority = request.priority;
  job->set_delay(request.delay.seconds);
  job->ttr = Seconds{std::max(request.ttr.count, 1U)};
  ++job->tube->total_jobs;
  ++job->tube->metrics->put_count;
  ++parts_.counts.total_jobs;
  if (request.delay.seconds.count > 0) {
    parts_.moves.attach_delayed(job, now + request.delay);
  } else {
    parts_.moves.attach_ready(job);
    parts_.serve_queue.push(job->tube);
  }
  if (parts_.extended && tube->rules != nullptr) [[unlikely]] {
    const Policy& policy = tube->rules->policy;
    if (request.ttr.count == 0) job->ttr.count = std::max(policy.default_ttr.count, 1U);
    job->ttr.count = std::max(job->ttr.count, policy.min_ttr.count);
    parts_.expiries.set(*job);
  }
  return job;
}

// put() is the most frequent command, and insert() is inlined there alone.
Job* Engine::insert_out_of_line(Tube* tube, Time now, PutRequest& request) {
  return insert(tube, now, request);
}

JobId Engine::put(SessionId id, Time now, PutRequest request, Output& out) {
  Job* job = insert(parts_.sessions.at(id).used, now, request);
  emit_added(*job, out);
  const JobId job_id = job->id;
  dispatcher_.serve_waiting(now, out);
  return job_id;
}

std::optional<JobId> Engine::put_in_tube(Time now, std::string_view name, PutRequest request,
                                         Output& out) {
  Tube* tube = parts_.registry.find_or_add(now, name);
  if (tube == nullptr) return std::nullopt;
  const Job* job = insert_out_of_line(tube, now, request);
  emit_added(*job, out);
  const JobId job_id = job->id;
  dispatcher_.serve_waiting(now, out);
  return job_id;
}

std::optional<PutResult> Engine::put_with_tags(Time now, std::string_view name, PutRequest request,
                                               const JobTags& tags, Output& out) {
  if (!parts_.registry.has_room_for(name)) return std::nullopt;
  UniqueKey* key =
      tags.unique_key.empty() ? nullptr : parts_.unique_keys.find(name, tags.unique_key);
  const bool is_over = key != nullptr && key->cooldown_is_over(now);
  if (key != nullptr && !is_over) {
    parts_.memory.give_back(request.body.size() + tags_memory(tags));
    return duplicate_of(*key, request.priority, out);
  }
  Unit unit(out, is_over);
  if (is_over) parts_.unique_keys.end(key, out);
  Tube* tube = parts_.registry.find_or_add(now, name);
  Job* job = insert_out_of_line(tube, now, request);
  JobTags kept = tags;
  const bool ttr_is_raised =
      tube->rules != nullptr && job->ttr.count <= tube->rules->policy.min_ttr.count;
  if (ttr_is_raised) kept.ttr_short_by_ms = 0;
  parts_.memory.give_back_part(tags_memory(tags) - tags_memory(kept));
  if (kept.any()) parts_.tags.set(*job, kept);
  parts_.moves.wait_for_group(job);
  durable_.describe(now, job->id, out);
  unit.end();
  PutResult result;
  result.id = job->id;
  dispatcher_.serve_waiting(now, out);
  return result;
}

PutResult Engine::duplicate_of(const UniqueKey& key, Priority priority, Output& out) {
  ++parts_.counts.deduplicated_jobs;
  PutResult result;
  result.id = key.id;
  result.added = false;
  if (key.has_cooldown()) return result;
  Job* job = parts_.jobs.find(key.id);
  result.state = job->state;
  ++job->tube->metrics->deduplicated_count;
  if (priority >= job->priority) return result;
  result.lowered_to = priority;
  tube_moves_.set_priority(*job, priority, out);
  return result;
}

void Engine::add_job(Time now, const Added& added, const JobTags& tags, const JobMarks& marks,
                     Output& out) {
  TUBED_ASSERT(added.id >= parts_.jobs.next_id());
  Added placed = added;
  placed.place.bury_order = parts_.moves.next_bury_order();
  Job* job = replay_.add(now, placed);
  parts_.memory.give_back(job->body.size());  // claimed by the caller and by the replay
  JobTags kept = tags;
  Unit unit(out, !tags.unique_key.empty());
  if (parts_.unique_keys.taken(now, added.tube, tags.unique_key, out) != nullptr)
    kept.unique_key = {};
  parts_.memory.give_back_part(tags_memory(tags) - tags_memory(kept) + marks_memory(tags, marks));
  if (kept.any()) parts_.tags.set(*job, kept);
  if (marks.any()) parts_.tag_records.set_marks(*job, marks);
  if (parts_.lives.governs(*job)) parts_.expiries.set(*job);
  if (!marks.after_done) parts_.moves.wait_for_group(job);
  ++job->tube->total_jobs;
  ++job->tube->metrics->put_count;
  ++parts_.counts.total_jobs;
  durable_.describe(now, added.id, out);
  unit.end();
  parts_.serve_queue.push(job->tube);
  dispatcher_.serve_waiting(now, out);
}

bool Engine::remove(SessionId id, Time now, JobId job_id, Output& out) {
  Job* job = parts_.jobs.find(job_id);
  if (job == nullptr || !job->in_tube()) return false;
  if (job->state == JobState::reserved) {
    if (!parts_.sessions.at(id).may_act_on(*job)) return false;
    job->tube->metrics->reserve_to_delete.add(now - job->history().reserved_at);
  }
  parts_.removal.remove(now, job, out);
  if (parts_.extended) [[unlikely]]
    dispatcher_.job_has_ended(now, job_id, Notice::Kind::deleted, out);
  return true;
}

bool Engine::remove_held(Time now, JobId id, Output& out) {
  Job* job = parts_.jobs.find_present(id);
  if (job == nullptr) return false;
  parts_.removal.remove(now, job, out);
  dispatcher_.job_has_ended(now, id, Notice::Kind::deleted, out);
  return true;
}

Job* Engine::held_by(SessionId session, JobId id) {
  Job* job = parts_.jobs.find_present(id);
  const bool held = job != nullptr && job->state == JobState::reserved;
  return held && parts_.sessions.at(session).may_act_on(*job) ? job : nullptr;
}

bool Engine::release(SessionId session, Time now, JobId id, Priority priority, TimeSpan delay,
                     Output& out) {
  Job* job = held_by(session, id);
  if (job == nullptr) return false;
  job->priority = priority;
  job->set_delay(delay.seconds);
  ++job->history().counters.releases;
  if (parts_.lives.governs(*job)) [[unlikely]] {
    parts_.lives.come_back(now, job, delay, out);
    dispatcher_.serve_waiting(now, out);
    return true;
  }
  parts_.moves.detach(job);
  if (delay.seconds.count > 0) {
    parts_.moves.attach_delayed(job, now + delay);
  } else {
    parts_.moves.attach_ready(job);
    parts_.serve_queue.push(job->tube);
  }
  emit_placed(*job, out);
  dispatcher_.serve_waiting(now, out);
  return true;
}

bool Engine::bury(SessionId session, Time now, JobId id, Priority priority, Output& out) {
  Job* job = held_by(session, id);
  if (job == nullptr) return false;
  parts_.moves.detach(job);
  job->priority = priority;
  ++job->history().counters.buries;
  ++job->tube->bury_count;
  parts_.moves.attach_buried(job);
  emit_placed(*job, out);
  if (parts_.extended) [[unlikely]]
    dispatcher_.job_has_ended(now, id, Notice::Kind::buried, out);
  return true;
}

bool Engine::touch(SessionId session, Time now, JobId id, std::optional<TimeSpan> left) {
  Job* job = held_by(session, id);
  if (job == nullptr) return false;
  if (job->holder()->past) [[unlikely]]
    parts_.recorded.take_over(parts_.sessions.at(session), job);
  if (left && left->seconds.count == 0) left->seconds.count = 1;
  job->deadline = left ? now + *left : job->end_of_ttr(now);
  job->holder()->held.update({job->deadline, job->id}, job);
  parts_.deadlines.update(*job->holder());
  parts_.recorded.record(*job);
  return true;
}

bool Engine::kick_job(Time now, JobId id, TimeSpan delay, Output& out) {
  Job* job = parts_.jobs.find_present(id);
  if (job == nullptr) return false;
  if (job->state != JobState::buried && job->state != JobState::delayed) return false;
  if (delay.seconds.count > 0) {
    ++job->history().counters.kicks;
    if (parts_.lives.governs(*job)) parts_.lives.renew(*job);
    if (job->groups() != nullptr) job->groups()->end_waiting();
    parts_.moves.detach(job);
    job->set_delay(delay.seconds);
    parts_.moves.attach_delayed(job, now + delay);
    emit_placed(*job, out);
    return true;
  }
  parts_.lives.kick(job, out);
  dispatcher_.serve_waiting(now, out);
  return true;
}

std::uint32_t Engine::kick(Time now, Slices& kick, Output& out) {
  const Tube* tube = parts_.tubes.find(kick.tube);
  std::uint32_t moved = 0;
  for (; kick.left > 0 && moved < parts_.limits.work_per_turn; --kick.left, ++moved) {
    // Other sessions may have taken jobs since the last slice.
    Job* job = tube == nullptr ? nullptr : tube->first(kick.state);
    if (job == nullptr) {
      kick.left = 0;
      break;
    }
    parts_.lives.kick(job, out);
  }
  dispatcher_.serve_waiting(now, out);
  return moved;
}

// --- Queries

EngineInfo Engine::info() const {
  EngineInfo info = parts_.counts;
  info.timeouts = due_work_.timeouts();
  info.waiting = dispatcher_.waiting();
  info.jobs = parts_.moves.counts();
  info.dead_jobs = parts_.lives.dead_jobs();
  info.expired_jobs = parts_.lives.expired_jobs();
  info.waiting_for_jobs = parts_.job_waiters.size();
  info.tubes = parts_.tubes.size();
  info.watches = parts_.watch_lists.size();
  info.concurrency_keys = parts_.concurrency_keys.reserved_keys();
  info.memory_bytes = parts_.memory.bytes();
  return info;
}

}  // namespace tubed::engine
