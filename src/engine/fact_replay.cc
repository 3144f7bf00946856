#include "engine/fact_replay.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "base/overloaded.h"
#include "base/planted.h"
#include "engine/job_facts.h"
#include "engine/tag_memory.h"

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

void FactReplay::apply(Time now, const Fact& fact) {
  groups_.defer();
  std::visit(Overloaded{[&](const Added& added) { add(now, added); },
                        [&](const Placed& placed) {
                          Job* job = jobs_.find_present(placed.id);
                          if (job != nullptr && job->tags() != nullptr)
                            tag_records_.set_marks(*job, {});
                          apply_placed(now, placed);
                        },
                        [&](const Removed& removed) { apply_removed(now, removed); },
                        [&](const Paused& paused) { apply_paused(now, paused); },
                        [&](const Flushed& flushed) { apply_flushed(now, flushed); },
                        [&](const AddedWithTags& added) {
                          const bool waits = !added.tags.after.empty() && !added.marks.after_done;
                          Job& job = *add(now, added, waits);
                          if (added.tags.any()) add_tags(job, added.tags);
                          tag_records_.set_marks(job, added.marks);
                        },
                        [&](const PlacedWithMarks& placed) {
                          Job* job = jobs_.find_present(placed.id);
                          if (job != nullptr) tag_records_.set_marks(*job, placed.marks);
                          apply_placed(now, placed);
                        },
                        [&](const PolicySet& set) { apply_policy(now, set); },
                        [&](const Remembered& remembered) { apply_remembered(remembered); },
                        [&](const Moved& moved) { apply_moved(now, moved); },
                        [&](const Held& held) {
                          apply_held(now, {.id = held.id, .until = deadline_near(held.until, now)});
                        },
                        [](const Applied&) {}},
             fact);
}

void FactReplay::end() {
  if (groups_.deferred()) groups_.end_deferral();
  moves_.order_buried();
  if (!policies_.any() && expiries_.empty()) return;
  std::vector<Job*> jobs;
  jobs_.for_each([&](const Job& job) {
    if (!job.flushed() && lives_.governs(job)) jobs.push_back(jobs_.find(job.id));
  });
  for (Job* job : jobs) expiries_.set(*job);
}

Job* FactReplay::add(Time now, const Added& added, bool waits) {
  Tube* tube = registry_.find_or_add_for_job(now, added.tube);
  Job* job = jobs_.add(added.id);
  job->tube = tube;
  job->body = added.body;
  job->ttr = added.ttr;
  job->created = creation_near(added.created, now);
  job->epoch = tube->epoch;
  job->set_counters(added.counters);
  memory_.restore(job->body.size());
  attach(now, job, added.place, waits);
  return job;
}

void FactReplay::apply_placed(Time now, const Placed& placed) {
  Job* job = jobs_.find_present(placed.id);
  if (job == nullptr) return;
  job->set_counters(placed.counters);
  if (is_buried_there(*job, placed.place)) {
    job->priority = placed.place.priority;
    job->set_delay(placed.place.delay);
    return;
  }
  moves_.detach(job);
  attach(now, job, placed.place, job->waits_for_group());
}

void FactReplay::apply_removed(Time now, const Removed& removed) {
  jobs_.mark_used(removed.id);
  Job* job = jobs_.find(removed.id);
  if (job == nullptr) {
    UniqueKey* key = unique_keys_.of_deleted_job(removed.id);
    if (key != nullptr) unique_keys_.forget(key);
    return;
  }
  if (job->flushed()) return flushes_.forget(job);
  Tube* tube = job->tube;
  if (job->tags() != nullptr) tags_.free(*job);
  moves_.detach(job);
  memory_.give_back(job->body.size());
  jobs_.remove(removed.id);
  registry_.remove_if_unwanted(now, tube);
}

void FactReplay::apply_paused(Time now, const Paused& paused) {
  const bool holds = paused.duration.count > 0 && paused.until > now;
  if (!holds && tubes_.find(paused.tube) == nullptr) return;
  Tube* tube = registry_.find_or_add_for_job(now, paused.tube);
  tube->pause = holds ? paused.duration : Seconds{};
  tube->pause_until = paused.until;
  registry_.set_paused(tube, holds);
  tubes_.update_giving(tube);
  registry_.remove_if_unwanted(now, tube);
}

void FactReplay::apply_flushed(Time now, const Flushed& flushed) {
  unique_keys_.flush(flushed.tube);
  Tube* tube = tubes_.find(flushed.tube);
  if (tube == nullptr) return;
  flushes_.add(moves_.take_all_jobs(tube));
  registry_.remove_if_unwanted(now, tube);
}

void FactReplay::add_tags(Job& job, const JobTags& tags) {
  memory_.restore_part(tags_memory(tags));
  tags_.set(job, tags);
}

void FactReplay::apply_remembered(const Remembered& remembered) {
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

void FactReplay::apply_moved(Time now, const Moved& moved) {
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
  attach(now, job, place, job->waits_for_group());
  registry_.remove_if_unwanted(now, from);
}

void FactReplay::apply_held(Time now, const Held& held) {
  Job* job = jobs_.find_present(held.id);
  if (job == nullptr) return;
  if (job->state == JobState::reserved) {
    job->deadline = held.until;
    job->holder()->held.update({held.until, held.id}, job);
    return deadlines_.update(*job->holder());
  }
  // The end of its delay was not a fact.
  const bool was_delayed = job->state == JobState::delayed && job->deadline <= now;
  moves_.detach(job);
  if (was_delayed && !job->waits_for_group()) job->resting_state = JobState::ready;
  moves_.attach_to_past(sessions_.past(), now, job, held.until);
}

// A later version of the server may know other keys.
void FactReplay::apply_policy(Time now, const PolicySet& set) {
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
void FactReplay::attach(Time now, Job* job, const Placement& place, bool waits) {
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
