// Engine: what the tags of puts do [extension: put tags].
//
// The tags of a job are in its history (TagRecord), so a job without tags pays nothing for them.
// The table of unique keys is explained in engine/unique_keys.h.
#include "engine/engine.h"

namespace tubed::engine {

JobTags Engine::tags_of(const Job& job) {
  JobTags tags;
  const TagRecord* record = job.tags();
  if (record == nullptr) return tags;
  if (record->unique != nullptr) {
    tags.unique_key = *record->unique->name;
    tags.cooldown = record->cooldown;
  }
  tags.ttr_short_by_ms = record->ttr_short_by_ms;
  if (const LifeRecord* life = job.life(); life != nullptr) {
    tags.max_attempts = life->max_attempts;
    tags.dead = life->dead;
    tags.time_to_live = life->time_to_live;
  }
  if (record->concurrency != nullptr) {
    tags.concurrency_key = record->concurrency->key->name;
    tags.concurrency_limit = record->concurrency->limit;
  }
  if (const GroupRecord* groups = job.groups(); groups != nullptr) {
    if (groups->group != nullptr) tags.group = groups->group->name;
    tags.after = groups->after;
  }
  return tags;
}

JobMarks Engine::marks_of(const Job& job) {
  JobMarks marks;
  if (job.life() != nullptr) marks = job.life()->marks;
  marks.after_done = job.groups() != nullptr && job.groups()->after_done;
  return marks;
}

// Precondition: the key is free, and its memory and that of the tags was claimed.
void Engine::set_tags(Job& job, const JobTags& tags) {
  // Claimed for records that a policy may have made already.
  memory_.give_back_part(kTagRecordBytes + (tags.limits_life() ? kLifeRecordBytes : 0));
  TagRecord& record = make_tags(job);
  record.ttr_short_by_ms = tags.ttr_short_by_ms;
  if (!tags.unique_key.empty()) {
    record.unique = add_key(job.tube->name, tags.unique_key, job.id);
    record.cooldown = tags.cooldown;
  }
  if (tags.limits_life()) {
    LifeRecord& life = make_life(job);
    life.max_attempts = tags.max_attempts;
    life.time_to_live = tags.time_to_live;
    life.dead = tags.dead;
  }
  if (!tags.concurrency_key.empty()) add_concurrency(job, tags);
  if (tags.names_groups()) add_groups(job, tags);
  set_expiry(job);
}

// Null: the key is free. A cooldown that has ended ends durably here.
UniqueKey* Engine::taken_key(Time now, std::string_view tube, std::string_view key, FactSink& out) {
  if (key.empty()) return nullptr;
  UniqueKey* found = unique_keys_.find(tube, key);
  if (found == nullptr || !found->cooldown_is_over(now)) return found;
  end_key(found, out);
  return nullptr;
}

// The job becomes ready.
void Engine::attach_ready_with_tags(Job* job) {
  if (job->groups() != nullptr) job->groups()->end_waiting();
  if (job->concurrency() != nullptr) return add_ready_of_key(job);
  job->tube->ready.push({job->priority, job->id}, job);
}

TagRecord& Engine::make_tags(Job& job) {
  auto& tags = job.history().tags;
  if (tags == nullptr) {
    tags = std::make_unique<TagRecord>();
    memory_.restore_part(kTagRecordBytes);
  }
  return *tags;
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

// The job is about to be removed. Its memory is then that of its body alone.
void Engine::free_tags(Job& job) {
  if (job.life() != nullptr) free_life(job);
  if (job.concurrency() != nullptr) free_concurrency(job);
  if (job.groups() != nullptr) free_groups(job);
  // A flushed job has no key any more.
  UniqueKey* key = std::exchange(job.tags()->unique, nullptr);
  if (key != nullptr && !job.flushed()) free_key(key);
  job.tags()->ttr_short_by_ms = 0;
  drop_empty_tags(job);
}

void Engine::erase_with_cooldown(Time now, Job* job, FactSink& out) {
  const JobId id = job->id;
  const bool cools_down = begin_cooldown(now, *job);
  Unit unit(out, cools_down);
  erase_job(job, out);
  if (cools_down) describe(now, id, out);
}

// The job is about to be deleted. False: its key has no cooldown.
bool Engine::begin_cooldown(Time now, Job& job) {
  TagRecord* tags = job.tags();
  if (tags->unique == nullptr || tags->cooldown.count == 0 || job.flushed()) return false;
  unique_keys_.cool_down(tags->unique, now + tags->cooldown);
  plan_removal();
  tags->unique = nullptr;
  return true;
}

// The job is about to move. False: its key is taken there, and the job has none any more.
bool Engine::move_key(Time now, Job& job, const Tube& to, FactSink& out) {
  TagRecord* tags = job.tags();
  if (tags == nullptr || tags->unique == nullptr) return false;
  const std::string name = *tags->unique->name;
  if (taken_key(now, to.name, name, out) != nullptr) {
    forget_key(tags->unique);
    return false;
  }
  erase_key(tags->unique);
  tags->unique = add_key(to.name, name, job.id);
  return true;
}

// The job that has the key, if any, no longer has it.
void Engine::forget_key(UniqueKey* key) {
  if (!key->has_cooldown() && !key->tube->flushed) {
    Job* job = jobs_.find(key->id);
    job->tags()->unique = nullptr;
    drop_empty_tags(*job);
  }
  free_key(key);
}

void Engine::free_key(UniqueKey* key) {
  memory_.give_back_part(UniqueKeys::cost_of(*key->name));
  erase_key(key);
  plan_removal();
}

// The memory of a tube's record is not claimed with the put, which need not know whether the tube
// has a record. In a replay, the job or the cooldown that has the key no longer has it: two have
// one key only after a salvage, which may have lost a `Removed`.
UniqueKey* Engine::add_key(std::string_view tube, std::string_view name, JobId id) {
  if (!unique_keys_.has_keys(tube)) memory_.restore_part(UniqueKeys::cost_of_tube(tube));
  if (UniqueKey* added = unique_keys_.add(tube, name, id)) return added;
  forget_key(unique_keys_.find(tube, name));
  return add_key(tube, name, id);
}

void Engine::erase_key(UniqueKey* key) {
  const std::uint64_t cost = UniqueKeys::cost_of_tube(key->tube->tube);
  if (unique_keys_.erase(key)) memory_.give_back_part(cost);
}

// The same, durably. The key of a job ends with the facts about that job.
void Engine::end_key(UniqueKey* key, FactSink& out) {
  const JobId id = key->id;
  const bool had_cooldown = key->has_cooldown();
  forget_key(key);
  if (had_cooldown) out.fact(Removed{.id = id});
}

}  // namespace tubed::engine
