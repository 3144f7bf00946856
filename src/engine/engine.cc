// A command that changes a job moves it (engine/job_moves.h). A job that comes to rest is then
// emitted as a fact. The command ends with serve_waiting(), so its own change is complete before
// the queue changes again. A command that drops what a tube was needed for calls
// TubeRegistry::remove_if_unwanted().
#include "engine/engine.h"

#include <algorithm>

#include "engine/job_facts.h"

namespace tubed::engine {

Engine::Engine(const Limits& limits)
    : limits_(limits),
      job_waiters_(deadlines_, entries_walked_),
      tag_records_(limits_, memory_, extended_),
      unique_keys_(jobs_, tag_records_, memory_),
      concurrency_keys_(limits_, tubes_, serve_queue_, memory_, entries_walked_),
      groups_(memory_),
      expiries_(tubes_, serve_queue_, tag_records_),
      reservation_limits_(tubes_, deadlines_, serve_queue_),
      registry_(limits_, tubes_, tube_metrics_, policies_, deadlines_, flushed_, expiries_,
                reservation_limits_, extended_),
      moves_(tubes_, deadlines_, serve_queue_, concurrency_keys_, groups_, unique_keys_,
             reservation_limits_, entries_walked_, extended_),
      tags_(tag_records_, unique_keys_, concurrency_keys_, groups_, expiries_, moves_, memory_,
            extended_),
      removal_(jobs_, moves_, memory_, tags_, unique_keys_, registry_),
      lives_(moves_, removal_, registry_, tag_records_, expiries_, job_waiters_, serve_queue_,
             extended_),
      flushes_(jobs_, tubes_, flushed_, memory_, tag_records_, unique_keys_, groups_, registry_,
               moves_, tags_),
      replay_({.jobs = jobs_,
               .policies = policies_,
               .tubes = tubes_,
               .sessions = sessions_,
               .deadlines = deadlines_,
               .memory = memory_,
               .tag_records = tag_records_,
               .unique_keys = unique_keys_,
               .groups = groups_,
               .expiries = expiries_,
               .registry = registry_,
               .moves = moves_,
               .tags = tags_,
               .lives = lives_,
               .flushes = flushes_}) {}

Engine::~Engine() = default;

// --- Sessions

SessionId Engine::open() {
  if (groups_.deferred() || moves_.is_in_disorder()) [[unlikely]]
    end_replay();
  Session& session = sessions_.open();
  session.used = registry_.default_tube();
  ++registry_.default_tube()->using_count;
  session.watches.push_back(
      {.tube = registry_.default_tube(), .session = &session, .waiting_links = {}});
  ++registry_.default_tube()->watching_count;
  ++watch_count_;
  ++counts_.sessions;
  return session.id;
}

void Engine::close(SessionId id, Time now, Output& out) {
  Session& session = sessions_.at(id);
  if (session.waiting) end_wait(session);
  sessions_.close(session);
  --counts_.sessions;
  if (session.producer) --counts_.producers;
  if (session.worker) --counts_.workers;
  --session.used->using_count;
  registry_.remove_if_unwanted(now, session.used);
  watch_count_ -= session.watches.size();
  for (const WatchEntry& watch : session.watches) {
    --watch.tube->watching_count;
    registry_.remove_if_unwanted(now, watch.tube);
  }
  session.watches.clear();
  session.watched.reset();
  deadlines_.update(session);
  continue_closing(now, out);
  serve_waiting(now, out);
}

void Engine::continue_closing(Time now, Output& out) {
  std::uint32_t budget = limits_.work_per_turn;
  while (sessions_.has_closing()) {
    Session& session = sessions_.closing();
    give_back_held(session, now, budget, out);
    if (!session.held.empty()) return;
    sessions_.free_closing();
  }
}

void Engine::give_back_held(Session& session, Time now, std::uint32_t& budget, Output& out) {
  for (; budget > 0 && !session.held.empty(); --budget) give_back(now, session.held.top(), out);
}

void Engine::take_back(SessionId id, Time now, Output& out) {
  Session& session = sessions_.at(id);
  while (!session.held.empty()) lives_.take_back(now, session.held.top(), out);
  serve_waiting(now, out);
}

void Engine::take_back(SessionId session, Time now, JobId id, Output& out) {
  if (!tube_of_held(session, id)) return;
  lives_.take_back(now, jobs_.find(id), out);
  serve_waiting(now, out);
}

// --- Tubes

bool Engine::use(SessionId id, Time now, std::string_view name) {
  Session& session = sessions_.at(id);
  Tube* tube = registry_.find_or_add(now, name);
  if (tube == nullptr) return false;
  ++tube->using_count;
  --session.used->using_count;
  registry_.remove_if_unwanted(now, session.used);
  session.used = tube;
  return true;
}

bool Engine::watch(SessionId id, Time now, std::string_view name, std::uint32_t weight) {
  Session& session = sessions_.at(id);
  TUBED_ASSERT(!session.waiting);
  const Tube* known = tubes_.find(name);
  if (known != nullptr) {
    if (const auto found = find_watch(session, known); found != session.watches.end()) {
      found->weight = weight;
      return true;
    }
  }
  if (session.watches.size() >= limits_.session_watches) return false;
  if (watch_count_ >= limits_.watches) return false;
  Tube* tube = registry_.find_or_add(now, name);
  if (tube == nullptr) return false;
  session.watches.push_back(
      {.tube = tube, .session = &session, .waiting_links = {}, .weight = weight});
  ++tube->watching_count;
  ++watch_count_;
  if (session.watched != nullptr) {
    session.watched->insert(tube->index);
  } else if (session.watches.size() > limits_.short_watch_list) {
    session.watched = std::make_unique<IndexSet>();
    for (const WatchEntry& watch : session.watches) session.watched->insert(watch.tube->index);
  }
  return true;
}

bool Engine::ignore(SessionId id, Time now, std::string_view name) {
  Session& session = sessions_.at(id);
  TUBED_ASSERT(!session.waiting);
  auto& watches = session.watches;
  Tube* tube = tubes_.find(name);
  const auto found = tube == nullptr ? watches.end() : find_watch(session, tube);
  if (found == watches.end()) return true;
  if (watches.size() == 1) return false;
  *found = watches.back();
  watches.pop_back();
  if (watches.size() <= limits_.short_watch_list) {
    session.watched.reset();
  } else {
    session.watched->erase(tube->index);
  }
  --tube->watching_count;
  --watch_count_;
  registry_.remove_if_unwanted(now, tube);
  return true;
}

std::vector<WatchEntry>::iterator Engine::find_watch(Session& session, const Tube* tube) {
  auto& watches = session.watches;
  if (session.watched != nullptr && !session.watched->contains(tube->index)) return watches.end();
  entries_walked_ += watches.size();
  return std::find_if(watches.begin(), watches.end(),
                      [&](const WatchEntry& watch) { return watch.tube == tube; });
}

std::size_t Engine::watched_count(SessionId session) const {
  return sessions_.at(session).watches.size();
}

std::string_view Engine::watched_tube(SessionId session, std::size_t place) const {
  return sessions_.at(session).watches[place].tube->name;
}

std::string_view Engine::used_tube(SessionId session) const {
  return sessions_.at(session).used->name;
}

bool Engine::pause(Time now, std::string_view name, TimeSpan duration, Output& out) {
  Tube* tube = tubes_.find(name);
  if (tube == nullptr) return false;
  ++tube->pause_count;
  tube->pause = duration.seconds;
  tube->pause_until = now + duration;
  const bool paused = duration.seconds.count > 0;
  registry_.set_paused(tube, paused);
  tubes_.update_giving(tube);
  out.fact(Paused{.tube = tube->name, .duration = tube->pause, .until = tube->pause_until});
  serve_queue_.push(tube);
  serve_waiting(now, out);
  if (!paused) registry_.remove_if_unwanted(now, tube);
  return true;
}

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
    registry_.apply_policy(tube);
    serve_waiting(now, out);
    registry_.remove_if_unwanted(now, tube);
  }
  return true;
}

void Engine::set_patterns(Time now, std::vector<TubePattern> patterns, Output& out) {
  if (patterns.empty() && policies_.patterns().empty()) return;
  policies_.set_patterns(std::move(patterns));
  extended_ = true;
  registry_.begin_patterns();
  registry_.apply_patterns(now, limits_.work_per_turn);
  serve_waiting(now, out);
}

// --- Jobs

void Engine::give_back(Time now, Job* job, Output& out) {
  if (job->truncated()) [[unlikely]]
    return removal_.drop_truncated(now, job, out);
  if (lives_.governs(*job)) [[unlikely]]
    return lives_.come_back(now, job, {}, out);
  moves_.make_ready(job);
  emit_placed(*job, out);
}

void Engine::mark_producer(SessionId id) {
  Session& session = sessions_.at(id);
  if (!std::exchange(session.producer, true)) ++counts_.producers;
}

[[gnu::always_inline]] inline Job* Engine::insert(Tube* tube, Time now, PutRequest& request) {
  Job* job = jobs_.add(jobs_.next_id());
  job->body = std::move(request.body);
  job->tube = tube;
  job->created = now;
  job->epoch = job->tube->epoch;
  job->priority = request.priority;
  job->set_delay(request.delay.seconds);
  job->ttr = Seconds{std::max(request.ttr.count, 1U)};
  ++job->tube->total_jobs;
  ++job->tube->metrics->put_count;
  ++counts_.total_jobs;
  if (request.delay.seconds.count > 0) {
    moves_.attach_delayed(job, now + request.delay);
  } else {
    moves_.attach_ready(job);
    serve_queue_.push(job->tube);
  }
  if (extended_ && tube->rules != nullptr) [[unlikely]] {
    const Policy& policy = tube->rules->policy;
    if (request.ttr.count == 0) job->ttr.count = std::max(policy.default_ttr.count, 1U);
    job->ttr.count = std::max(job->ttr.count, policy.min_ttr.count);
    expiries_.set(*job);
  }
  return job;
}

// put() is the most frequent command, and insert() is inlined there alone.
Job* Engine::insert_out_of_line(Tube* tube, Time now, PutRequest& request) {
  return insert(tube, now, request);
}

JobId Engine::put(SessionId id, Time now, PutRequest request, Output& out) {
  Job* job = insert(sessions_.at(id).used, now, request);
  emit_added(*job, out);
  const JobId job_id = job->id;
  serve_waiting(now, out);
  return job_id;
}

std::optional<JobId> Engine::put_in_tube(Time now, std::string_view name, PutRequest request,
                                         Output& out) {
  Tube* tube = registry_.find_or_add(now, name);
  if (tube == nullptr) return std::nullopt;
  const Job* job = insert_out_of_line(tube, now, request);
  emit_added(*job, out);
  const JobId job_id = job->id;
  serve_waiting(now, out);
  return job_id;
}

std::optional<PutResult> Engine::put_with_tags(Time now, std::string_view name, PutRequest request,
                                               const JobTags& tags, Output& out) {
  if (!has_room_for_tube(name)) return std::nullopt;
  UniqueKey* key = tags.unique_key.empty() ? nullptr : unique_keys_.find(name, tags.unique_key);
  const bool is_over = key != nullptr && key->cooldown_is_over(now);
  if (key != nullptr && !is_over) {
    return_memory(request.body.size() + tags_memory(tags));
    return duplicate_of(*key, request.priority, out);
  }
  Unit unit(out, is_over);
  if (is_over) unique_keys_.end(key, out);
  Tube* tube = registry_.find_or_add(now, name);
  Job* job = insert_out_of_line(tube, now, request);
  JobTags kept = tags;
  const bool ttr_is_raised =
      tube->rules != nullptr && job->ttr.count <= tube->rules->policy.min_ttr.count;
  if (ttr_is_raised) kept.ttr_short_by_ms = 0;
  memory_.give_back_part(tags_memory(tags) - tags_memory(kept));
  if (kept.any()) tags_.set(*job, kept);
  moves_.wait_for_group(job);
  describe(now, job->id, out);
  unit.end();
  PutResult result;
  result.id = job->id;
  serve_waiting(now, out);
  return result;
}

PutResult Engine::duplicate_of(const UniqueKey& key, Priority priority, Output& out) {
  ++counts_.deduplicated_jobs;
  PutResult result;
  result.id = key.id;
  result.added = false;
  if (key.has_cooldown()) return result;
  Job* job = jobs_.find(key.id);
  result.state = job->state;
  ++job->tube->metrics->deduplicated_count;
  if (priority >= job->priority) return result;
  result.lowered_to = priority;
  set_priority(*job, priority, out);
  return result;
}

bool Engine::remove(SessionId id, Time now, JobId job_id, Output& out) {
  Job* job = jobs_.find(job_id);
  if (job == nullptr || !job->in_tube()) return false;
  if (job->state == JobState::reserved) {
    if (!holds(id, *job)) return false;
    job->tube->metrics->reserve_to_delete.add(now - job->history().reserved_at);
  }
  removal_.remove(now, job, out);
  if (extended_) [[unlikely]]
    job_has_ended(now, job_id, Notice::Kind::deleted, out);
  return true;
}

bool Engine::remove_held(Time now, JobId id, Output& out) {
  Job* job = jobs_.find_present(id);
  if (job == nullptr) return false;
  removal_.remove(now, job, out);
  job_has_ended(now, id, Notice::Kind::deleted, out);
  return true;
}

Job* Engine::held_by(SessionId session, JobId id) {
  Job* job = jobs_.find_present(id);
  const bool held = job != nullptr && job->state == JobState::reserved;
  return held && holds(session, *job) ? job : nullptr;
}

bool Engine::release(SessionId session, Time now, JobId id, Priority priority, TimeSpan delay,
                     Output& out) {
  Job* job = held_by(session, id);
  if (job == nullptr) return false;
  job->priority = priority;
  job->set_delay(delay.seconds);
  ++job->history().counters.releases;
  if (lives_.governs(*job)) [[unlikely]] {
    lives_.come_back(now, job, delay, out);
    serve_waiting(now, out);
    return true;
  }
  moves_.detach(job);
  if (delay.seconds.count > 0) {
    moves_.attach_delayed(job, now + delay);
  } else {
    moves_.attach_ready(job);
    serve_queue_.push(job->tube);
  }
  emit_placed(*job, out);
  serve_waiting(now, out);
  return true;
}

bool Engine::bury(SessionId session, Time now, JobId id, Priority priority, Output& out) {
  Job* job = held_by(session, id);
  if (job == nullptr) return false;
  moves_.detach(job);
  job->priority = priority;
  ++job->history().counters.buries;
  ++job->tube->bury_count;
  moves_.attach_buried(job);
  emit_placed(*job, out);
  if (extended_) [[unlikely]]
    job_has_ended(now, id, Notice::Kind::buried, out);
  return true;
}

bool Engine::touch(SessionId session, Time now, JobId id, std::optional<TimeSpan> left) {
  Job* job = held_by(session, id);
  if (job == nullptr) return false;
  if (job->holder()->past) [[unlikely]]
    take_over(sessions_.at(session), job);
  if (left && left->seconds.count == 0) left->seconds.count = 1;
  job->deadline = left ? now + *left : job->end_of_ttr(now);
  job->holder()->held.update({job->deadline, job->id}, job);
  deadlines_.update(*job->holder());
  if (held_sink_ != nullptr) [[unlikely]]
    emit_held(*job, *held_sink_);
  return true;
}

std::vector<JobId> Engine::held_jobs(SessionId session) const {
  std::vector<JobId> ids;
  const DeadlineHeap& held = sessions_.at(session).held;
  ids.reserve(held.size());
  held.for_each([&](const DeadlineKey& key, const Job*) { ids.push_back(key.id); });
  return ids;
}

}  // namespace tubed::engine
