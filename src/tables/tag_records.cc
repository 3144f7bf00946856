#include "tables/tag_records.h"

#include <memory>

#include "tables/concurrency_keys.h"
#include "tables/groups.h"
#include "tables/unique_keys.h"

namespace tubed::engine {

JobTags tags_of(const Job& job) {
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

JobMarks marks_of(const Job& job) {
  JobMarks marks;
  if (job.life() != nullptr) marks = job.life()->marks;
  marks.after_done = job.groups() != nullptr && job.groups()->after_done;
  return marks;
}

TagRecord& TagRecords::make(Job& job) {
  auto& tags = job.history().tags;
  if (tags == nullptr) {
    tags = std::make_unique<TagRecord>();
    memory_.restore_part(kTagBytes);
  }
  return *tags;
}

LifeRecord& TagRecords::make_life(Job& job) {
  auto& life = make(job).life;
  if (life == nullptr) {
    extended_ = true;
    life = std::make_unique<LifeRecord>(&job);
    memory_.restore_part(kLifeBytes);
  }
  return *life;
}

void TagRecords::drop_empty(Job& job) {
  TagRecord* tags = job.tags();
  if (tags->life != nullptr && tags->life->empty()) {
    tags->life.reset();
    memory_.give_back_part(kLifeBytes);
  }
  if (!tags->empty()) return;
  job.history().tags.reset();
  memory_.give_back_part(kTagBytes);
}

void TagRecords::set_marks(Job& job, const JobMarks& all) {
  if (job.groups() != nullptr) job.groups()->after_done = all.after_done;
  JobMarks marks = all;
  marks.after_done = false;  // which is in the other record
  if (job.life() == nullptr && !marks.any()) return;
  LifeRecord& life = make_life(job);
  memory_.give_back_part(life.dead_from.size());
  life.dead_from = marks.dead_from;
  memory_.restore_part(life.dead_from.size());
  life.marks = marks;
  life.marks.dead_from = life.dead_from;
  drop_empty(job);
}

bool TagRecords::has_memory_for_life(const Job& job) const {
  std::uint64_t bytes = job.tube->name.size();
  if (job.tags() == nullptr) bytes += kTagBytes;
  if (job.life() == nullptr) bytes += kLifeBytes;
  return memory_.has_room_for(bytes);
}

void TagRecords::free_life(Job& job) {
  const LifeRecord& life = *job.life();
  memory_.give_back_part(kLifeBytes + life.dead.size() + life.dead_from.size());
  job.tags()->life.reset();
}

}  // namespace tubed::engine
