#include "engine/fact_replay.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "base/overloaded.h"
#include "base/planted.h"
#include "engine/job_facts.h"
#include "tables/tag_memory.h"

namespace tubed::engine {

namespace {

// Returns the nearest time that is at most `farthest` from now, never kNever. A record with a valid
// checksum may have any number as a time, and differences of times must not overflow.
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
  TUBED_ASSERT(parts_.counts.sessions == 0);
  parts_.groups.defer();
  std::visit(Overloaded{[&](const Added& added) { add(now, added); },
                        [&](const Placed& placed) {
                          Job* job = parts_.jobs.find_present(placed.id);
                          if (job != nullptr && job->tags() != nullptr)
                            parts_.tag_records.set_marks(*job, {});
                          apply_placed(now, placed);
                        },
                        [&](const Removed& removed) { apply_removed(now, removed); },
                        [&](const Paused& paused) { apply_paused(now, paused); },
                        [&](const Flushed& flushed) { apply_flushed(now, flushed); },
                        [&](const AddedWithTags& added) {
                          const bool waits = !added.tags.after.empty() && !added.marks.after_done;
                          Job& job = *add(now, added, waits);
                          if (added.tags.any()) add_tags(job, added.tags);
                          parts_.tag_records.set_marks(job, added.marks);
                        },
                        [&](const PlacedWithMarks& placed) {
                          Job* job = parts_.jobs.find_present(placed.id);
                          if (job != nullptr) parts_.tag_records.set_marks(*job, placed.marks);
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
  if (parts_.groups.deferred()) parts_.groups.end_deferral();
  parts_.moves.order_buried();
  if (!parts_.policies.any() && parts_.expiries.empty()) return;
  std::vector<Job*> jobs;
  parts_.jobs.for_each([&](const Job& job) {
    if (!job.flushed() && parts_.lives.governs(job)) jobs.push_back(parts_.jobs.find(job.id));
  });
  for (Job* job : jobs) parts_.expiries.set(*job);
}

Job* FactReplay::add(Time now, const Added& added, bool waits) {
  Tube* tube = parts_.registry.find_or_add_for_job(now, added.tube);
  Job* job = parts_.jobs.add(added.id);
  job->tube = tube;
  job->body = added.body;
  job->ttr = added.ttr;
  job->created = creation_near(added.created, now);
  job->epoch = tube->epoch;
  job->set_counters(added.counters);
  parts_.memory.restore(job->body.size());
  attach(now, job, added.place, waits);
  return job;
}

void FactReplay::apply_placed(Time now, const Placed& placed) {
  Job* job = parts_.jobs.find_present(placed.id);
  if (job == nullptr) return;
  job->set_counters(placed.counters);
  if (is_buried_there(*job, placed.place)) {
    job->priority = placed.place.priority;
    job->set_delay(placed.place.delay);
    return;
  }
  parts_.moves.detach(job);
  attach(now, job, placed.place, job->waits_for_group());
}

void FactReplay::apply_removed(Time now, const Removed& removed) {
  parts_.jobs.mark_used(removed.id);
  Job* job = parts_.jobs.find(removed.id);
  if (job == nullptr) {
    UniqueKey* key = parts_.unique_keys.of_deleted_job(removed.id);
    if (key != nullptr) parts_.unique_keys.forget(key);
    return;
  }
  if (job->flushed()) return flushes_.forget(job);
  Tube* tube = job->tube;
  if (job->tags() != nullptr) parts_.tags.free(*job);
  parts_.moves.detach(job);
  parts_.memory.give_back(job->body.size());
  parts_.jobs.remove(removed.id);
  parts_.registry.remove_if_unwanted(now, tube);
}

void FactReplay::apply_paused(Time now, const Paused& paused) {
  const bool holds = paused.duration.count > 0 && paused.until > now;
  if (!holds && parts_.tubes.find(paused.tube) == nullptr) return;
  Tube* tube = parts_.registry.find_or_add_for_job(now, paused.tube);
  tube->pause = holds ? paused.duration : Seconds{};
  tube->pause_until = paused.until;
  parts_.registry.set_paused(tube, holds);
  parts_.tubes.update_giving(tube);
  parts_.registry.remove_if_unwanted(now, tube);
}

void FactReplay::apply_flushed(Time now, const Flushed& flushed) {
  parts_.unique_keys.flush(flushed.tube);
  Tube* tube = parts_.tubes.find(flushed.tube);
  if (tube == nullptr) return;
  flushes_.add(parts_.moves.take_all_jobs(tube));
  parts_.registry.remove_if_unwanted(now, tube);
}

void FactReplay::add_tags(Job& job, const JobTags& tags) {
  parts_.memory.restore_part(tags_memory(tags));
  parts_.tags.set(job, tags);
}

void FactReplay::apply_remembered(const Remembered& remembered) {
  parts_.jobs.mark_used(remembered.id);
  if (parts_.jobs.find(remembered.id) != nullptr) return;  // salvaged: the job is back
  UniqueKey* key = parts_.unique_keys.of_deleted_job(remembered.id);
  if (key == nullptr) {
    const UniqueKey* other = parts_.unique_keys.find(remembered.tube, remembered.key);
    if (other != nullptr && other->id > remembered.id) return;
    parts_.memory.restore_part(UniqueKeys::cost_of(remembered.key));
    key = parts_.unique_keys.add(remembered.tube, remembered.key, remembered.id);
  }
  parts_.unique_keys.cool_down(key, remembered.until);
}

void FactReplay::apply_moved(Time now, const Moved& moved) {
  Job* job = parts_.jobs.find_present(moved.id);
  if (job == nullptr) return;
  Tube* from = job->tube;
  const Placement place = resting_place(*job);
  const std::string key(tags_of(*job).unique_key);
  const Seconds cooldown = tags_of(*job).cooldown;
  if (!key.empty()) parts_.unique_keys.forget(job->tags()->unique);
  parts_.moves.detach(job);
  Tube* to = parts_.registry.find_or_add_for_job(now, moved.tube);
  job->tube = to;
  job->epoch = to->epoch;
  if (moved.keeps_key && !key.empty()) {
    parts_.memory.restore_part(UniqueKeys::cost_of(key));
    parts_.tag_records.make(*job).unique = parts_.unique_keys.add(to->name, key, job->id);
    job->tags()->cooldown = cooldown;
  }
  attach(now, job, place, job->waits_for_group());
  parts_.registry.remove_if_unwanted(now, from);
}

void FactReplay::apply_held(Time now, const Held& held) {
  Job* job = parts_.jobs.find_present(held.id);
  if (job == nullptr) return;
  if (job->state == JobState::reserved) {
    job->deadline = held.until;
    job->holder()->held.update({held.until, held.id}, job);
    return parts_.deadlines.update(*job->holder());
  }
  // The end of its delay was not a fact.
  const bool was_delayed = job->state == JobState::delayed && job->deadline <= now;
  parts_.moves.detach(job);
  if (was_delayed && !job->waits_for_group()) job->resting_state = JobState::ready;
  parts_.moves.attach_to_past(parts_.sessions.past(), now, job, held.until);
}

// A later version of the server may know other keys.
void FactReplay::apply_policy(Time now, const PolicySet& set) {
  const auto key = find_policy_key(set.key);
  const bool is_set = set.value != kNoPolicyValue;
  if (!key || (is_set && !is_policy_value(*key, set.value))) return;
  parts_.policies.set(set.tube, *key, is_set ? set.value : std::string_view());
  Tube* tube = parts_.tubes.find(set.tube);
  if (tube == nullptr) return;
  parts_.registry.apply_policy(tube);
  parts_.registry.remove_if_unwanted(now, tube);
}

// `waits`: the end of its delay does not make the job ready by itself.
void FactReplay::attach(Time now, Job* job, const Placement& place, bool waits) {
  job->priority = place.priority;
  job->set_delay(place.delay);
  switch (place.state) {
    case JobState::delayed:
      if (place.until > now || waits) {
        parts_.moves.attach_delayed(
            job, place.until == kNever ? kNever : deadline_near(place.until, now));
        // A job that is added gets its groups, and is held, after this.
        if (job->held() && job->groups() != nullptr) parts_.groups.hold(*job);
        return;
      }
      [[fallthrough]];
    case JobState::ready:
    case JobState::reserved:
      return parts_.moves.attach_ready(job);
    case JobState::buried:
      return parts_.moves.attach_buried(job, place.bury_order);
  }
}

}  // namespace tubed::engine
