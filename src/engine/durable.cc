// Engine: its durable state as facts, and replaying them (the replay law is in engine/fact.h).
//
// The replay functions do the same moves as the commands, but emit nothing and serve no session,
// since no session is open.
#include <algorithm>

#include "base/overloaded.h"
#include "base/planted.h"
#include "engine/engine.h"
#include "engine/job_facts.h"

namespace tubed::engine {

namespace {

// A record with a valid checksum may have any number as a time. The nearest time that is `farthest`
// from now, so that differences of times do not overflow. Never kNever.
Time near(Time time, Time now, Duration farthest) {
  if (TUBED_PLANTED(replayed_at_any_time)) return time;
  const Time last = kNever - Duration(1);
  return std::clamp(time, now < Time::min() + farthest ? Time::min() : now - farthest,
                    now > last - farthest ? last : now + farthest);
}

// 73 years: the ages of two jobs are compared.
Time creation_near(Time time, Time now) {
  return near(time, now, Duration(std::int64_t{1} << 61));
}

// 146 years: longer than any delay.
Time deadline_near(Time time, Time now) {
  return near(time, now, Duration(std::int64_t{1} << 62));
}

// The job keeps its place among the buried.
bool is_buried_there(const Job& job, const Placement& place) {
  return job.state == JobState::buried && place.state == JobState::buried &&
         job.made_history->bury_order == place.bury_order &&
         !TUBED_PLANTED(buried_place_is_searched);
}

}  // namespace

void Engine::describe(Time now, JobId id, FactSink& sink) const {
  if (const Job* job = jobs_.find_present(id); job != nullptr) {
    emit_job(*job, now, sink);
    return emit_if_held(*job, sink);
  }
  const UniqueKey* key = unique_keys_.of_deleted_job(id);
  if (key != nullptr && !key->tube->flushed && key->until > now) return emit_cooldown(*key, sink);
  sink.fact(Removed{.id = id});
}

void Engine::describe_delay(Time now, JobId id, FactSink& sink) const {
  const Job* job = jobs_.find_present(id);
  if (job == nullptr) {
    const UniqueKey* key = unique_keys_.of_deleted_job(id);
    if (key != nullptr && !key->tube->flushed) emit_cooldown(*key, sink);
    return;
  }
  // A job whose delay has ended is ready and keeps its delay as a value. No fact was emitted then.
  const bool was_delayed = job->resting_state == JobState::ready && job->delay().count > 0;
  if (job->resting_state != JobState::delayed && !was_delayed) return emit_if_held(*job, sink);
  emit_place_at(*job, now, sink);
  emit_if_held(*job, sink);
}

void Engine::visit_durable(Time now, FactSink& sink) const {
  jobs_.for_each([&](const Job& job) {
    if (job.flushed()) return;
    emit_job(job, now, sink);
    emit_if_held(job, sink);
  });
  for (const auto& tube : tubes_.all()) {
    if (!tube->paused() || tube->pause_until <= now) continue;
    sink.fact(Paused{.tube = tube->name, .duration = tube->pause, .until = tube->pause_until});
  }
  // The highest id was used even if its job was deleted.
  if (jobs_.next_id() > 1 && jobs_.find_present(jobs_.next_id() - 1) == nullptr) {
    sink.fact(Removed{.id = jobs_.next_id() - 1});
  }
  unique_keys_.for_each_cooldown([&](const UniqueKey& key) {
    if (key.until > now) emit_cooldown(key, sink);
  });
  policies_.for_each([&](std::string_view tube, std::string_view key, std::string_view value) {
    sink.fact(PolicySet{.tube = tube, .key = key, .value = value});
  });
}

void Engine::replay(Time now, const Fact& fact) {
  TUBED_ASSERT(counts_.sessions == 0);
  groups_.defer();
  std::visit(Overloaded{[&](const Added& added) { replay_added(now, added); },
                        [&](const Placed& placed) {
                          Job* job = jobs_.find_present(placed.id);
                          if (job != nullptr && job->tags() != nullptr)
                            tag_records_.set_marks(*job, {});
                          replay_placed(now, placed);
                        },
                        [&](const Removed& removed) { replay_removed(now, removed); },
                        [&](const Paused& paused) { replay_paused(now, paused); },
                        [&](const Flushed& flushed) { replay_flushed(now, flushed); },
                        [&](const AddedWithTags& added) {
                          const bool waits = !added.tags.after.empty() && !added.marks.after_done;
                          replay_added(now, added, waits);
                          Job& job = *jobs_.find(added.id);
                          if (added.tags.any()) add_tags(job, added.tags);
                          tag_records_.set_marks(job, added.marks);
                        },
                        [&](const PlacedWithMarks& placed) {
                          Job* job = jobs_.find_present(placed.id);
                          if (job != nullptr) tag_records_.set_marks(*job, placed.marks);
                          replay_placed(now, placed);
                        },
                        [&](const PolicySet& set) { replay_policy(now, set); },
                        [&](const Remembered& remembered) { replay_remembered(remembered); },
                        [&](const Moved& moved) { replay_moved(now, moved); },
                        [&](const Held& held) {
                          replay_held(now,
                                      {.id = held.id, .until = deadline_near(held.until, now)});
                        },
                        [](const Applied&) {}},
             fact);
}

void Engine::end_replay() {
  if (groups_.deferred()) groups_.end_deferral();
  moves_.order_buried();
  if (!policies_.any() && expiries_.empty()) return;
  std::vector<Job*> jobs;
  jobs_.for_each([&](const Job& job) {
    if (!job.flushed() && lives_.governs(job)) jobs.push_back(jobs_.find(job.id));
  });
  for (Job* job : jobs) expiries_.set(*job);
}

void Engine::replay_added(Time now, const Added& added, bool waits) {
  Tube* tube = registry_.find_or_add_for_job(now, added.tube);
  Job* job = jobs_.add(added.id);
  job->tube = tube;
  job->body = added.body;
  job->ttr = added.ttr;
  job->created = creation_near(added.created, now);
  job->epoch = tube->epoch;
  job->set_counters(added.counters);
  memory_.restore(job->body.size());
  attach_placed(now, job, added.place, waits);
}

void Engine::replay_placed(Time now, const Placed& placed) {
  Job* job = jobs_.find_present(placed.id);
  if (job == nullptr) return;
  job->set_counters(placed.counters);
  if (is_buried_there(*job, placed.place)) {
    job->priority = placed.place.priority;
    job->set_delay(placed.place.delay);
    return;
  }
  moves_.detach(job);
  attach_placed(now, job, placed.place, job->waits_for_group());
}

void Engine::replay_removed(Time now, const Removed& removed) {
  jobs_.mark_used(removed.id);
  Job* job = jobs_.find(removed.id);
  if (job == nullptr) {
    UniqueKey* key = unique_keys_.of_deleted_job(removed.id);
    if (key != nullptr) unique_keys_.forget(key);
    return;
  }
  if (job->flushed()) return forget_flushed(job);
  Tube* tube = job->tube;
  if (job->tags() != nullptr) tags_.free(*job);
  moves_.detach(job);
  memory_.give_back(job->body.size());
  jobs_.remove(removed.id);
  registry_.remove_if_unwanted(now, tube);
}

void Engine::replay_paused(Time now, const Paused& paused) {
  const bool holds = paused.duration.count > 0 && paused.until > now;
  if (!holds && tubes_.find(paused.tube) == nullptr) return;
  Tube* tube = registry_.find_or_add_for_job(now, paused.tube);
  tube->pause = holds ? paused.duration : Seconds{};
  tube->pause_until = paused.until;
  registry_.set_paused(tube, holds);
  tubes_.update_giving(tube);
  registry_.remove_if_unwanted(now, tube);
}

void Engine::replay_flushed(Time now, const Flushed& flushed) {
  unique_keys_.flush(flushed.tube);
  Tube* tube = tubes_.find(flushed.tube);
  if (tube == nullptr) return;
  add_flushed(moves_.take_all_jobs(tube));
  registry_.remove_if_unwanted(now, tube);
}

void Engine::add_job(Time now, const Added& added, const JobTags& tags, const JobMarks& marks,
                     Output& out) {
  TUBED_ASSERT(added.id >= jobs_.next_id());
  Added placed = added;
  placed.place.bury_order = moves_.next_bury_order();
  replay_added(now, placed);
  Job* job = jobs_.find(added.id);
  memory_.give_back(job->body.size());  // claimed by the caller and by the replay
  JobTags kept = tags;
  Unit unit(out, !tags.unique_key.empty());
  if (unique_keys_.taken(now, added.tube, tags.unique_key, out) != nullptr) kept.unique_key = {};
  memory_.give_back_part(tags_memory(tags) - tags_memory(kept) + marks_memory(tags, marks));
  if (kept.any()) tags_.set(*job, kept);
  if (marks.any()) tag_records_.set_marks(*job, marks);
  if (lives_.governs(*job)) expiries_.set(*job);
  if (!marks.after_done) moves_.wait_for_group(job);
  ++job->tube->total_jobs;
  ++job->tube->metrics->put_count;
  ++counts_.total_jobs;
  describe(now, added.id, out);
  unit.end();
  serve_queue_.push(job->tube);
  serve_waiting(now, out);
}

void Engine::add_tags(Job& job, const JobTags& tags) {
  memory_.restore_part(tags_memory(tags));
  tags_.set(job, tags);
}

void Engine::replay_remembered(const Remembered& remembered) {
  jobs_.mark_used(remembered.id);
  if (jobs_.find(remembered.id) != nullptr) return;  // salvaged: the job is back
  UniqueKey* key = unique_keys_.of_deleted_job(remembered.id);
  if (key == nullptr) {
    const UniqueKey* other = unique_keys_.find(remembered.tube, remembered.key);
    if (other != nullptr && other->id > remembered.id) return;
    memory_.restore_part(UniqueKeys::cost_of(remembered.key));
    key = unique_keys_.add(remembered.tube, remembered.key, remembered.id);
  }
  unique_keys_.cool_down(key, remembered.until);
}

void Engine::replay_moved(Time now, const Moved& moved) {
  Job* job = jobs_.find_present(moved.id);
  if (job == nullptr) return;
  Tube* from = job->tube;
  const Placement place = resting_place(*job);
  const std::string key(tags_of(*job).unique_key);
  const Seconds cooldown = tags_of(*job).cooldown;
  if (!key.empty()) unique_keys_.forget(job->tags()->unique);
  moves_.detach(job);
  Tube* to = registry_.find_or_add_for_job(now, moved.tube);
  job->tube = to;
  job->epoch = to->epoch;
  if (moved.keeps_key && !key.empty()) {
    memory_.restore_part(UniqueKeys::cost_of(key));
    tag_records_.make(*job).unique = unique_keys_.add(to->name, key, job->id);
    job->tags()->cooldown = cooldown;
  }
  attach_placed(now, job, place, job->waits_for_group());
  registry_.remove_if_unwanted(now, from);
}

// A later version of the server may know other keys.
void Engine::replay_policy(Time now, const PolicySet& set) {
  const auto key = find_policy_key(set.key);
  const bool is_set = set.value != kNoPolicyValue;
  if (!key || (is_set && !is_policy_value(*key, set.value))) return;
  policies_.set(set.tube, *key, is_set ? set.value : std::string_view());
  Tube* tube = tubes_.find(set.tube);
  if (tube == nullptr) return;
  registry_.apply_policy(tube);
  registry_.remove_if_unwanted(now, tube);
}

// `waits`: the end of its delay does not make the job ready by itself.
void Engine::attach_placed(Time now, Job* job, const Placement& place, bool waits) {
  job->priority = place.priority;
  job->set_delay(place.delay);
  switch (place.state) {
    case JobState::delayed:
      if (place.until > now || waits) {
        moves_.attach_delayed(job,
                              place.until == kNever ? kNever : deadline_near(place.until, now));
        // A job that is added gets its groups, and is held, after this.
        if (job->held() && job->groups() != nullptr) groups_.hold(*job);
        return;
      }
      [[fallthrough]];
    case JobState::ready:
    case JobState::reserved:
      return moves_.attach_ready(job);
    case JobState::buried:
      return moves_.attach_buried(job, place.bury_order);
  }
}

}  // namespace tubed::engine
