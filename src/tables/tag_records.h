// TagRecords: the records of tags and marks, which most jobs do not have, and the memory that they
// count as.
#pragma once

#include <cstdint>

#include "tables/job.h"
#include "tables/job_memory.h"

namespace tubed::engine {

// The tags and the marks of a job, as its records have them. O(1).
JobTags tags_of(const Job& job);
JobMarks marks_of(const Job& job);

class TagRecords {
 public:
  // The bytes that a TagRecord and a LifeRecord count as, without the names of tubes in the
  // LifeRecord.
  static constexpr std::uint32_t kTagBytes = sizeof(TagRecord) + 16;
  static constexpr std::uint32_t kLifeBytes =
      sizeof(LifeRecord) + sizeof(DeadlineKey) + sizeof(void*) + 16;

  // They outlive it. `extended` becomes true with the first life.
  TagRecords(JobMemory& memory, bool& extended) : memory_(memory), extended_(extended) {}

  // Each is O(1).

  // Returns the record of the job, and makes it if necessary. Its memory counts, whatever the limit
  // is.
  TagRecord& make(Job& job);
  LifeRecord& make_life(Job& job);
  // Returns false if the memory does not suffice for a life of the job and the name of its tube.
  bool has_memory_for_life(const Job& job) const;
  // Replaces the marks of the job. Their memory counts, whatever the limit is.
  void set_marks(Job& job, const JobMarks& marks);
  // The life is about to be removed with its job. Precondition: it is in no heap.
  void free_life(Job& job);
  // Removes the records that say nothing. Precondition: the job has tags.
  void drop_empty(Job& job);

 private:
  JobMemory& memory_;
  bool& extended_;
};

}  // namespace tubed::engine
