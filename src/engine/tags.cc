// Engine: what the tags of puts do [extension: put tags].
//
// The tags of a job are in its history (TagRecord), so a job without tags pays nothing for them.
// The table of unique keys is explained in engine/unique_keys.h.
#include "engine/engine.h"

namespace tubed::engine {

// Precondition: the key is free, and its memory and that of the tags was claimed.
void Engine::set_tags(Job& job, const JobTags& tags) {
  // Claimed for records that a policy may have made already.
  memory_.give_back_part(TagRecords::kTagBytes + (tags.limits_life() ? TagRecords::kLifeBytes : 0));
  TagRecord& record = tag_records_.make(job);
  record.ttr_short_by_ms = tags.ttr_short_by_ms;
  if (!tags.unique_key.empty()) {
    record.unique = unique_keys_.add(job.tube->name, tags.unique_key, job.id);
    record.cooldown = tags.cooldown;
  }
  if (tags.limits_life()) {
    LifeRecord& life = tag_records_.make_life(job);
    life.max_attempts = tags.max_attempts;
    life.time_to_live = tags.time_to_live;
    life.dead = tags.dead;
  }
  if (!tags.concurrency_key.empty()) add_concurrency(job, tags);
  if (tags.names_groups()) {
    extended_ = true;
    groups_.add(job, tags.group, tags.after);
  }
  expiries_.set(job);
}

void Engine::add_concurrency(Job& job, const JobTags& tags) {
  const bool ready = job.state == JobState::ready;
  if (ready) moves_.detach(&job);
  extended_ = true;
  concurrency_keys_.add(job, tags.concurrency_key, tags.concurrency_limit);
  if (ready) moves_.attach_ready(&job);
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
  if (job.life() != nullptr) expiries_.free_life(job);
  if (job.concurrency() != nullptr) concurrency_keys_.remove(job);
  if (job.groups() != nullptr) groups_.remove(job);
  unique_keys_.remove(job);
  job.tags()->ttr_short_by_ms = 0;
  tag_records_.drop_empty(job);
}

void Engine::erase_with_cooldown(Time now, Job* job, FactSink& out) {
  const JobId id = job->id;
  const bool cools_down = unique_keys_.begin_cooldown(now, *job);
  Unit unit(out, cools_down);
  erase_job(job, out);
  if (cools_down) describe(now, id, out);
}

}  // namespace tubed::engine
