// FlushedJobs: the jobs of flushed tubes, until they are removed.
//
// A flush takes the same time for a tube of ten jobs and for a tube of ten million:
//
// 1. Engine::flush() moves the tube's heaps and its list of buried jobs to this class, whole, and
//    gives the tube another epoch. The reserved jobs, which are few, are taken from their holders
//    one by one.
// 2. A job whose epoch differs from its tube's is flushed. Commands that name a job by its id do
//    not find it (JobTable::find_present), and no structure that a command walks has it.
// 3. The engine emits one fact, `Flushed`. The jobs are now gone for clients, durably.
// 4. Engine::remove_pending() removes the jobs, a few in each tick, and emits `Removed` for each:
//    the log can then free their records. Their memory counts until then.
//
// A tube that is removed meanwhile stays here until its last flushed job is removed, since the jobs
// refer to it. After a restart the log gives the flushed jobs that were not removed yet, and they
// are removed then.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "tables/age_sketch.h"
#include "tables/job.h"

namespace tubed::engine {

// The jobs of one flush.
struct FlushedBatch {
  Tube* tube = nullptr;
  std::uint16_t epoch = 0;
  ReadyHeap ready;
  ReadyHeap parked;
  DeadlineHeap delayed;
  JobList listed;                   // those that were buried, and then those that were reserved
  AgeSketch* ready_ages = nullptr;  // where the ready jobs are still counted; null: nowhere

  std::size_t size() const { return ready.size() + parked.size() + delayed.size() + listed.size(); }
};

class FlushedJobs {
 public:
  // A tube has this many batches here at most.
  static constexpr std::uint32_t kMaxBatchesOfTube = UINT16_MAX;

  bool empty() const { return batches_.empty(); }

  // Precondition: the batch is not empty. O(1).
  void add(FlushedBatch batch) {
    ++batch.tube->unremoved_flushes;
    batches_.push_back(std::move(batch));
  }

  // Keeps a tube that was removed and has batches here. Precondition: it has.
  void keep(std::unique_ptr<Tube> tube) { removed_tubes_.push_back(std::move(tube)); }

  // The job to remove next, in no particular order. Precondition: !empty(). O(1).
  Job* next() const {
    const FlushedBatch& batch = batches_.front();
    if (!batch.ready.empty()) return batch.ready.last();
    if (!batch.parked.empty()) return batch.parked.last();
    if (!batch.delayed.empty()) return batch.delayed.last();
    return batch.listed.first()->job;
  }

  // Takes a job out. `parked`: it is ready and was parked. Precondition: it is here. O(batches
  // before its own), and O(log n) unless it is next().
  [[gnu::cold]] void erase(Job* job, bool parked) {
    const auto batch = std::find_if(batches_.begin(), batches_.end(), [job](const auto& candidate) {
      return candidate.tube == job->tube && candidate.epoch == job->epoch;
    });
    TUBED_ASSERT(batch != batches_.end());
    if (job->state == JobState::ready) {
      (parked ? batch->parked : batch->ready).erase(job);
      if (batch->ready_ages != nullptr) batch->ready_ages->remove(job->created);
    } else if (job->state == JobState::delayed) {
      batch->delayed.erase(job);
    } else {
      batch->listed.erase(&job->history());
    }
    if (batch->size() > 0) return;
    Tube* tube = batch->tube;
    batches_.erase(batch);
    if (--tube->unremoved_flushes > 0) return;
    std::erase_if(removed_tubes_, [tube](const auto& removed) { return removed.get() == tube; });
  }

  // Calls visit(const FlushedBatch&) for each batch. For tests.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const FlushedBatch& batch : batches_) visit(batch);
  }

 private:
  std::deque<FlushedBatch> batches_;  // oldest first
  std::vector<std::unique_ptr<Tube>> removed_tubes_;
};

}  // namespace tubed::engine
