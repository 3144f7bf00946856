// Expiries: when jobs expire, by the time to live of a tag or of the policy of their tube.
//
// The time when a job expires is computed when it enters a tube and when it is put back at rest. A
// job that is reserved or buried when that time comes stays as it is. So a heap of all jobs that
// expire is enough: Lives::end_due() takes the due jobs from it, a slice in each tick. While that
// is late, a tube whose next job has expired is withheld.
#pragma once

#include <vector>

#include "tables/job.h"
#include "tables/serve_queue.h"
#include "tables/tag_records.h"
#include "tables/tube_table.h"

namespace tubed::engine {

// True: the job has a time to live, and it has passed. O(1).
inline bool has_expired(const Job& job, Time now) {
  const LifeRecord* life = job.life();
  return life != nullptr && life->expires <= now;
}

class Expiries {
 public:
  // All of them outlive it.
  Expiries(TubeTable& tubes, ServeQueue& serve_queue, TagRecords& records)
      : tubes_(tubes), serve_queue_(serve_queue), records_(records) {}

  // Works out when the job expires. O(log n).
  [[gnu::cold]] void set(Job& job);
  // The job, which has a LifeRecord, is about to be removed: removes the record. O(log n).
  void free_life(Job& job);

  bool empty() const { return heap_.empty(); }
  // When the next job expires; kNever: none does. O(1).
  Time next() const { return heap_.empty() ? kNever : heap_.top_key().deadline; }
  // Takes the next job out, which may be flushed, or reserved or buried. Precondition: !empty().
  // O(log n).
  Job* take_next();

  // The tube gives no jobs until give_again(), which all withheld tubes need. O(1).
  [[gnu::cold]] void withhold(Tube* tube);
  bool has_withheld() const { return !withheld_.empty(); }
  // O(withheld tubes).
  void give_again();
  // The tube is about to be removed. O(withheld tubes).
  void forget(const Tube& tube);

  void check_invariants() const { heap_.check_invariants(); }  // for tests

 private:
  TubeTable& tubes_;
  ServeQueue& serve_queue_;
  TagRecords& records_;
  ExpiryHeap heap_;  // each job that expires, until it was taken out
  std::vector<TubeRef> withheld_;
};

}  // namespace tubed::engine
