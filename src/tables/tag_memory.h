// The memory that the tags and the marks of jobs add to their bodies (tables/job_memory.h).
#pragma once

#include <cstdint>

#include "tables/concurrency_keys.h"
#include "tables/groups.h"
#include "tables/job.h"
#include "tables/tag_records.h"
#include "tables/unique_keys.h"

namespace tubed::engine {

// The bytes that the tags of a job count as; 0 without tags.
inline std::uint32_t tags_memory(const JobTags& tags) {
  std::uint32_t bytes = tags.any() ? TagRecords::kTagBytes : 0;
  if (!tags.unique_key.empty()) bytes += UniqueKeys::cost_of(tags.unique_key);
  if (!tags.concurrency_key.empty()) bytes += ConcurrencyKeys::cost_of(tags.concurrency_key);
  if (tags.names_groups()) bytes += Groups::cost_of(tags.group, tags.after);
  if (!tags.limits_life()) return bytes;
  return bytes + TagRecords::kLifeBytes + static_cast<std::uint32_t>(tags.dead.size());
}

// The bytes that marks add to the tags of their job.
inline std::uint32_t marks_memory(const JobTags& tags, JobMarks marks) {
  marks.after_done = false;  // which is in the record of the tag
  if (!marks.any()) return 0;
  const std::uint32_t record = tags.any() ? 0 : TagRecords::kTagBytes;
  const std::uint32_t life = tags.limits_life() ? 0 : TagRecords::kLifeBytes;
  return record + life + static_cast<std::uint32_t>(marks.dead_from.size());
}

}  // namespace tubed::engine
