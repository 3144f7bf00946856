#include "engine/tags.h"

namespace tubed::engine {

void Tags::set(Job& job, const JobTags& tags) {
  // Claimed for records that a policy may have made already.
  memory_.give_back_part(TagRecords::kTagBytes + (tags.limits_life() ? TagRecords::kLifeBytes : 0));
  TagRecord& record = records_.make(job);
  record.ttr_short_by_ms = tags.ttr_short_by_ms;
  if (!tags.unique_key.empty()) {
    record.unique = unique_keys_.add(job.tube->name, tags.unique_key, job.id);
    record.cooldown = tags.cooldown;
  }
  if (tags.limits_life()) {
    LifeRecord& life = records_.make_life(job);
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

void Tags::add_concurrency(Job& job, const JobTags& tags) {
  const bool ready = job.state == JobState::ready;
  if (ready) moves_.detach(&job);
  extended_ = true;
  concurrency_keys_.add(job, tags.concurrency_key, tags.concurrency_limit);
  if (ready) moves_.attach_ready(&job);
}

void Tags::free(Job& job) {
  if (job.life() != nullptr) expiries_.free_life(job);
  if (job.concurrency() != nullptr) concurrency_keys_.remove(job);
  if (job.groups() != nullptr) groups_.remove(job);
  unique_keys_.remove(job);
  job.tags()->ttr_short_by_ms = 0;
  records_.drop_empty(job);
}

}  // namespace tubed::engine
