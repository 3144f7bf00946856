// Tags: what the tags of a put do [extension: put tags].
//
// The tags of a job are in its history (TagRecord), so a job without tags pays nothing for them.
// Each kind has a part of its own: tables/unique_keys.h, tables/concurrency_keys.h, tables/groups.h
// and tables/expiries.h.
#pragma once

#include "engine/job_moves.h"
#include "tables/concurrency_keys.h"
#include "tables/expiries.h"
#include "tables/groups.h"
#include "tables/job.h"
#include "tables/job_memory.h"
#include "tables/tag_records.h"
#include "tables/unique_keys.h"

namespace tubed::engine {

class Tags {
 public:
  // All of them outlive it. `extended` becomes true with the first tag that decides where a job is.
  Tags(TagRecords& records, UniqueKeys& unique_keys, ConcurrencyKeys& concurrency_keys,
       Groups& groups, Expiries& expiries, JobMoves& moves, JobMemory& memory, bool& extended)
      : records_(records),
        unique_keys_(unique_keys),
        concurrency_keys_(concurrency_keys),
        groups_(groups),
        expiries_(expiries),
        moves_(moves),
        memory_(memory),
        extended_(extended) {}

  // The job, which was added just now, has these tags. Precondition: the key is free, and the
  // memory of the tags (tags_memory()) was claimed. O(log n).
  [[gnu::cold]] void set(Job& job, const JobTags& tags);
  // Frees the tags of a job that is about to be removed, and may be flushed. Afterwards it counts
  // as its body alone. O(log n).
  [[gnu::cold]] void free(Job& job);

 private:
  void add_concurrency(Job& job, const JobTags& tags);

  TagRecords& records_;
  UniqueKeys& unique_keys_;
  ConcurrencyKeys& concurrency_keys_;
  Groups& groups_;
  Expiries& expiries_;
  JobMoves& moves_;
  JobMemory& memory_;
  bool& extended_;
};

}  // namespace tubed::engine
