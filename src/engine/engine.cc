// How a job moves: its state and the place where it is linked change together. Every command that
// changes a job calls detach(), which takes the job out of its heap or list and uncounts its state,
// and then one of attach_ready(), attach_delayed(), attach_buried() and attach_reserved(). These
// link it into its new place, count the new state, and update what depends on the tube's or
// holder's first job (DeadlineIndex, the set of giving tubes). A job that comes to rest is then
// emitted as a fact. A job that becomes ready is not given away at once: its tube is pushed into
// the ServeQueue, and the command ends with serve_waiting(). So a command sees a stable queue until
// its own change is complete.
//
// A tube is created by the first use, watch or put that names it and removed by
// remove_if_unwanted() when no session, job or pause needs it. Each place that drops such
// a need calls it.
#include "engine/engine.h"

#include <algorithm>

#include "base/planted.h"

namespace tubed::engine {

Engine::Engine(const Limits& limits)
    : limits_(limits),
      tag_records_(limits_, memory_, extended_),
      unique_keys_(jobs_, tag_records_, memory_),
      concurrency_keys_(limits_, tubes_, serve_queue_, memory_, entries_walked_),
      groups_(memory_),
      default_tube_(add_tube(Time(), kDefaultTube)) {}

Engine::~Engine() = default;

// --- Sessions

SessionId Engine::open() {
  if (groups_.deferred() || buried_in_disorder_) [[unlikely]]
    end_replay();
  Session& session = sessions_.open();
  session.used = default_tube_;
  ++default_tube_->using_count;
  session.watches.push_back({.tube = default_tube_, .session = &session, .waiting_links = {}});
  ++default_tube_->watching_count;
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
  remove_if_unwanted(now, session.used);
  watch_count_ -= session.watches.size();
  for (const WatchEntry& watch : session.watches) {
    --watch.tube->watching_count;
    remove_if_unwanted(now, watch.tube);
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

// --- Tubes

Tube* Engine::find_or_add_tube(Time now, std::string_view name) {
  Tube* tube = tubes_.find(name);
  if (tube != nullptr) return tube;
  return tubes_.size() >= limits_.tubes ? nullptr : add_tube(now, name);
}

Tube* Engine::add_tube(Time now, std::string_view name) {
  Tube* tube = tubes_.add(name);
  tube->metrics = tube_metrics_.open(name, tube, limits_, now);
  if (policies_.any()) [[unlikely]]
    apply_policy(tube);
  return tube;
}

void Engine::remove_tube(Time now, Tube* tube) {
  tube_metrics_.close(tube->metrics, limits_, now);
  if (tube->rules != nullptr) deadlines_.set_rate_used(tube->rules.get(), false);
  if (!late_tubes_.empty()) {
    std::erase_if(late_tubes_, [&](const TubeRef& late) { return late.number == tube->number; });
  }
  const bool is_referred_to = tube->unremoved_flushes > 0;
  std::unique_ptr<Tube> removed = tubes_.remove(tube);
  if (is_referred_to) flushed_.keep(std::move(removed));
}

void Engine::remove_if_unwanted(Time now, Tube* tube) {
  if (tube != default_tube_ && !tube->wanted()) remove_tube(now, tube);
}

// Called after `pause_until` has changed.
void Engine::set_paused(Tube* tube, bool paused) {
  if (tube->paused()) --tube->metrics->paused_count;
  if (paused) ++tube->metrics->paused_count;
  deadlines_.set_paused(tube, paused);
}

bool Engine::use(SessionId id, Time now, std::string_view name) {
  Session& session = sessions_.at(id);
  Tube* tube = find_or_add_tube(now, name);
  if (tube == nullptr) return false;
  ++tube->using_count;
  --session.used->using_count;
  remove_if_unwanted(now, session.used);
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
  Tube* tube = find_or_add_tube(now, name);
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
  remove_if_unwanted(now, tube);
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
  set_paused(tube, paused);
  tubes_.update_giving(tube);
  out.fact(Paused{.tube = tube->name, .duration = tube->pause, .until = tube->pause_until});
  serve_queue_.push(tube);
  serve_waiting(now, out);
  if (!paused) remove_if_unwanted(now, tube);
  return true;
}

// --- A job's moves

// Counts a job in its state: in the engine, the tube and the tube's metrics. `kBy`: 1 after the job
// has entered the state, -1 before it leaves it.
template <JobState kState, int kBy>
[[gnu::always_inline]] inline void Engine::count_state(const Job& job) {
  Tube& tube = *job.tube;
  TubeMetrics& metrics = *tube.metrics;
  const auto count = [&](std::uint64_t StateCounts::*state) {
    counts_.jobs.*state += static_cast<std::uint64_t>(kBy);
    metrics.jobs.*state += static_cast<std::uint64_t>(kBy);
  };
  if (extended_ && job.tags() != nullptr) [[unlikely]]
    Groups::count(job, kState, kBy > 0);
  if constexpr (kState == JobState::delayed) {
    count(&StateCounts::delayed);
    if (job.deadline == kNever) [[unlikely]] {
      count(&StateCounts::held);
      tube.held_count += static_cast<std::uint32_t>(kBy);
    }
  }
  if constexpr (kState == JobState::buried) count(&StateCounts::buried);
  if constexpr (kState == JobState::reserved) count(&StateCounts::reserved);
  if constexpr (kState == JobState::ready) {
    count(&StateCounts::ready);
    if constexpr (kBy > 0) metrics.ready_ages.add(job.created);
    if constexpr (kBy < 0) metrics.ready_ages.remove(job.created);
    if (!job.urgent()) return;
    count(&StateCounts::urgent);
    tube.urgent_count += static_cast<std::uint32_t>(kBy);
  }
}

void Engine::detach(Job* job) {
  Tube* tube = job->tube;
  switch (job->state) {
    case JobState::ready:
      count_state<JobState::ready, -1>(*job);
      if (extended_ && job->concurrency() != nullptr) [[unlikely]] {
        concurrency_keys_.erase_ready(*job);
      } else {
        tube->ready.erase(job);
      }
      tubes_.update_giving(tube);
      break;
    case JobState::delayed:
      count_state<JobState::delayed, -1>(*job);
      tube->delayed.erase(job);
      if (extended_ && job->groups() != nullptr) [[unlikely]]
        groups_.unhold(*job);
      deadlines_.update_delay(tube);
      break;
    case JobState::buried:
      count_state<JobState::buried, -1>(*job);
      tube->buried.erase(&job->history());
      break;
    case JobState::reserved: {
      count_state<JobState::reserved, -1>(*job);
      JobHistory& history = *job->made_history;
      Session* holder = std::exchange(history.holder, nullptr);
      holder->held.erase(job);
      tube->reserved.erase(&history);
      deadlines_.update(*holder);
      if (extended_) [[unlikely]]
        end_reservation(job);
      break;
    }
  }
}

void Engine::attach_ready(Job* job) {
  Tube* tube = job->tube;
  job->state = job->resting_state = JobState::ready;
  if (extended_ && job->tags() != nullptr) [[unlikely]] {
    attach_ready_with_tags(job);
  } else {
    tube->ready.push({job->priority, job->id}, job);
  }
  tubes_.update_giving(tube);
  count_state<JobState::ready, 1>(*job);
}

void Engine::attach_delayed(Job* job, Time until) {
  job->state = job->resting_state = JobState::delayed;
  job->deadline = job->history().resting_until = until;
  job->tube->delayed.push({until, job->id}, job);
  count_state<JobState::delayed, 1>(*job);
  deadlines_.update_delay(job->tube);
}

void Engine::attach_held(Job* job) {
  attach_delayed(job, kNever);
  groups_.hold(*job);
}

// The job was put.
void Engine::wait_for_group(Job* job) {
  GroupRecord* record = job->groups();
  if (record == nullptr || record->after.empty() || job->state != JobState::ready) return;
  record->after_done = false;
  if (groups_.must_hold(*job)) {
    detach(job);
    attach_held(job);
  } else {
    record->after_done = true;
  }
}

void Engine::attach_buried(Job* job, std::uint64_t order) {
  auto& buried = job->tube->buried;
  job->state = job->resting_state = JobState::buried;
  JobHistory& history = job->history();
  history.bury_order = order;
  next_bury_order_ = std::max(next_bury_order_, order + 1);
  JobHistory* before = buried.last();
  if (TUBED_PLANTED(buried_place_is_searched)) {
    for (; before != nullptr && before->bury_order > order; ++entries_walked_)
      before = buried.previous(before);
  }
  // Only a replay of a compacted log buries out of order.
  if (before != nullptr && before->bury_order > order)
    buried_in_disorder_ = job->tube->buried_in_disorder = true;
  buried.insert_after(before, &history);
  count_state<JobState::buried, 1>(*job);
}

[[gnu::always_inline]] inline void Engine::link_reserved(Session& holder, Time now, Job* job,
                                                         Time deadline) {
  job->state = JobState::reserved;
  JobHistory& history = job->history();
  history.holder = &holder;
  history.reserved_at = now;
  ++history.counters.reserves;
  job->deadline = deadline;
  holder.held.push({deadline, job->id}, job);
  job->tube->reserved.push_back(&history);
  count_state<JobState::reserved, 1>(*job);
  deadlines_.update(holder);
}

void Engine::attach_reserved(Session& holder, Time now, Job* job) {
  const Duration early = std::chrono::milliseconds(TUBED_PLANTED(ttr_ends_a_tick_early) ? 1 : 0);
  link_reserved(holder, now, job, job->end_of_ttr(now) - early);
  // The wall clock may have been set back since a job from the journal was put.
  const Duration age = std::max(now - job->created, Duration::zero());
  const bool is_first = job->made_history->counters.reserves == 1;
  if (is_first) job->tube->metrics->put_to_reserve.add(age);
  ++job->tube->reserve_count;
  if (extended_) [[unlikely]] {
    if (job->tube->rules != nullptr) count_reservation(now, job->tube);
    begin_reservation(job);
  }
  if (held_sink_ != nullptr) [[unlikely]]
    emit_held(*job, *held_sink_);
}

// A reservation of earlier. It is not counted again for the statistics and the rate of its tube.
void Engine::attach_to_past(Time now, Job* job, Time until) {
  link_reserved(sessions_.past(), now, job, until);
  if (job->tube->rules != nullptr) recount_reserved(job->tube);
  begin_reservation(job);
}

// For the concurrency key of the job.
void Engine::begin_reservation(Job* job) {
  if (job->concurrency() != nullptr) concurrency_keys_.begin_reservation(*job);
}

void Engine::end_reservation(Job* job) {
  if (job->tube->rules != nullptr) recount_reserved(job->tube);
  if (job->concurrency() != nullptr) concurrency_keys_.end_reservation(*job);
}

void Engine::make_ready(Job* job) {
  detach(job);
  attach_ready(job);
  serve_queue_.push(job->tube);
}

void Engine::give_back(Time now, Job* job, Output& out) {
  if (job->truncated()) [[unlikely]]
    return drop_truncated(now, job, out);
  if (is_governed(*job)) [[unlikely]]
    return come_back(now, job, {}, out);
  make_ready(job);
  emit_placed(*job, out);
}

// --- Jobs

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
    attach_delayed(job, now + request.delay);
  } else {
    attach_ready(job);
    serve_queue_.push(job->tube);
  }
  if (extended_ && tube->rules != nullptr) [[unlikely]] {
    const Policy& policy = tube->rules->policy;
    if (request.ttr.count == 0) job->ttr.count = std::max(policy.default_ttr.count, 1U);
    job->ttr.count = std::max(job->ttr.count, policy.min_ttr.count);
    set_expiry(*job);
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
  Tube* tube = find_or_add_tube(now, name);
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
  Tube* tube = find_or_add_tube(now, name);
  Job* job = insert_out_of_line(tube, now, request);
  JobTags kept = tags;
  const bool ttr_is_raised =
      tube->rules != nullptr && job->ttr.count <= tube->rules->policy.min_ttr.count;
  if (ttr_is_raised) kept.ttr_short_by_ms = 0;
  memory_.give_back_part(tags_memory(tags) - tags_memory(kept));
  if (kept.any()) set_tags(*job, kept);
  wait_for_group(job);
  describe(now, job->id, out);
  unit.end();
  PutResult result;
  result.id = job->id;
  serve_waiting(now, out);
  return result;
}

// Or its tags are free already.
[[gnu::always_inline]] inline void Engine::erase_untagged(Job* job, FactSink& out) {
  const JobId id = job->id;
  detach(job);
  return_memory(job->body.size());
  jobs_.remove(id);
  out.fact(Removed{.id = id});
}

bool Engine::remove(SessionId id, Time now, JobId job_id, Output& out) {
  Job* job = jobs_.find(job_id);
  if (job == nullptr || !job->in_tube()) return false;
  if (job->state == JobState::reserved) {
    if (!holds(id, *job)) return false;
    job->tube->metrics->reserve_to_delete.add(now - job->history().reserved_at);
  }
  delete_job(now, job, out);
  if (extended_) [[unlikely]]
    job_has_ended(now, job_id, Notice::Kind::deleted, out);
  return true;
}

// For a client, so that its unique key may have a cooldown.
[[gnu::always_inline]] inline void Engine::delete_job(Time now, Job* job, FactSink& out) {
  Tube* tube = job->tube;
  count_deleted(*tube, 1);
  if (job->tags() != nullptr) [[unlikely]] {
    erase_with_cooldown(now, job, out);
  } else {
    erase_untagged(job, out);
  }
  remove_if_unwanted(now, tube);
}

bool Engine::remove_held(Time now, JobId id, Output& out) {
  Job* job = find_job(id);
  if (job == nullptr) return false;
  delete_job(now, job, out);
  job_has_ended(now, id, Notice::Kind::deleted, out);
  return true;
}

void Engine::count_deleted(Tube& tube, std::uint64_t jobs) {
  tube.delete_count += jobs;
  tube.metrics->delete_count += jobs;
}

void Engine::erase_job(Job* job, FactSink& out) {
  if (job->tags() != nullptr) [[unlikely]]
    free_tags(*job);
  erase_untagged(job, out);
}

Job* Engine::held_by(SessionId session, JobId id) {
  Job* job = find_job(id);
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
  if (is_governed(*job)) [[unlikely]] {
    come_back(now, job, delay, out);
    serve_waiting(now, out);
    return true;
  }
  detach(job);
  if (delay.seconds.count > 0) {
    attach_delayed(job, now + delay);
  } else {
    attach_ready(job);
    serve_queue_.push(job->tube);
  }
  emit_placed(*job, out);
  serve_waiting(now, out);
  return true;
}

bool Engine::bury(SessionId session, Time now, JobId id, Priority priority, Output& out) {
  Job* job = held_by(session, id);
  if (job == nullptr) return false;
  detach(job);
  job->priority = priority;
  ++job->history().counters.buries;
  ++job->tube->bury_count;
  attach_buried(job, next_bury_order_);
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
