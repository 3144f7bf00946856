// UniqueKeys: the keys of unique jobs, by tube [extension: idp].
//
// A key is taken as long as the job that was put with it exists, and for the cooldown of that job
// after its deletion. The cooldown outlives the tube, so a tube is only a name here.
//
// A cooldown is durable under the id of the deleted job: `Remembered` names that id, and `Removed`
// of it ends the cooldown. So the log finds both jobs and cooldowns by their ids.
//
// Flushing a tube frees all its keys at once: they move to a list of flushed keys, whole, where no
// look-up finds them. Engine::remove_pending() then ends them in slices, and emits `Removed` for
// each that has a cooldown. It does the same for cooldowns that have ended: no timer waits for
// that, since a look-up compares the time.
//
// Invariant: of the keys of a tube that are not flushed, each belongs to a job of the tube, which
// refers to it (JobHistory::tags), or has a cooldown. The reference of a flushed job is not valid.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/indexed_heap.h"
#include "facts/fact.h"
#include "tables/job.h"
#include "tables/job_memory.h"
#include "tables/job_table.h"
#include "tables/tag_records.h"

namespace tubed::engine {

struct KeysOfTube;

struct UniqueKey {
  JobId id = 0;  // of the job, or of the deleted job
  Time until;    // of the cooldown
  const std::string* name = nullptr;
  KeysOfTube* tube = nullptr;
  std::uint32_t heap_index = kNotInHeap;  // while it has a cooldown

  bool has_cooldown() const { return heap_index != kNotInHeap; }
  bool cooldown_is_over(Time now) const { return has_cooldown() && until <= now; }
};

struct KeysOfTube {
  using Keys = std::map<std::string, UniqueKey, std::less<>,
                        SlabAllocator<std::pair<const std::string, UniqueKey>>>;

  std::string tube;
  Keys keys;
  // The key that was added last. Keys are often numbered: the next key then follows it.
  Keys::iterator newest = keys.end();
  bool flushed = false;
};

class UniqueKeys {
 public:
  // The bytes that a key counts as until it is free: its record and the record of its cooldown.
  static std::uint32_t cost_of(std::string_view key) {
    return kBytesPerKey + static_cast<std::uint32_t>(key.size());
  }

  // The same of a tube that has keys.
  static std::uint64_t cost_of_tube(std::string_view tube) { return kBytesPerTube + tube.size(); }

  // All of them outlive it.
  UniqueKeys(JobTable& jobs, TagRecords& records, JobMemory& memory)
      : jobs_(jobs), records_(records), memory_(memory) {}

  // Null: no job and no cooldown has the key. O(log tubes + log keys of the tube).
  UniqueKey* find(std::string_view tube, std::string_view key);
  // The same, but null also if the cooldown has ended, which ends durably then. The empty key is
  // always free.
  UniqueKey* taken(Time now, std::string_view tube, std::string_view key, FactSink& out);
  // Adds a key that belongs to the job or to a cooldown. Another job or cooldown that has it no
  // longer has it: two have one key only after a salvage, which may have lost a `Removed`.
  // Precondition: the memory of the key was claimed. The memory of the tube's record is not, since
  // a put need not know whether the tube has a record. The same cost; O(log tubes), amortised, if
  // the key follows the key that was added to the tube before.
  UniqueKey* add(std::string_view tube, std::string_view key, JobId id);
  // The job is about to be removed, and may be flushed. O(log tubes + log keys + log cooldowns).
  void remove(Job& job);
  // Moves the key of a job that is about to move. Returns false if the job has no key, or if the
  // key is taken there; the job then loses it. The same cost.
  bool move(Time now, Job& job, std::string_view to, FactSink& out);
  // The job is about to be deleted. False: its key has no cooldown. O(log cooldowns).
  bool begin_cooldown(Time now, Job& job);
  // The key has a cooldown, or another. O(log cooldowns).
  void cool_down(UniqueKey* key, Time until);
  // Frees a key, which may be flushed; the job that has it no longer has it. The same cost as
  // remove().
  void forget(UniqueKey* key);
  // The same, durably. The key of a job ends with the facts about that job.
  void end(UniqueKey* key, FactSink& out);
  // The key whose cooldown is durable under this id, or null. It may be flushed. O(1).
  UniqueKey* of_deleted_job(JobId id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
  }

  // True: end_next() has something to do: keys are flushed, or a cooldown has ended. O(1).
  bool has_next(Time now) const { return next_ <= now; }
  // Ends a flushed key, or else the cooldown that ends first. Precondition: has_next(). The same
  // cost as remove().
  void end_next(FactSink& out);

  // Flushes all keys of the tube. Returns false if it has no keys. O(log tubes).
  bool flush(std::string_view tube);

  // Calls visit(const UniqueKey&) for each cooldown that is not flushed, by tube and key. O(keys).
  template <class Visit>
  void for_each_cooldown(Visit visit) const;
  // The keys of jobs that are not flushed. O(keys). For tests.
  std::size_t keys_of_jobs() const;
  // The bytes that all keys count as. O(keys). For tests.
  std::uint64_t memory() const;
  void check_invariants() const;

 private:
  // Measured with a key of 15 characters or less; the text of a longer key is outside the record.
  static constexpr std::uint32_t kBytesPerKey = 176;
  static constexpr std::uint32_t kBytesPerTube = 176;

  // Null: the key is taken.
  UniqueKey* insert(std::string_view tube, std::string_view key, JobId id);
  void free(UniqueKey* key);
  // Also the record of its tube, if that has no other key. Not the memory of the key.
  void erase(UniqueKey* key);
  // Called after flushed keys or cooldowns have changed.
  void update_next();

  JobTable& jobs_;
  TagRecords& records_;
  JobMemory& memory_;
  std::map<std::string_view, std::unique_ptr<KeysOfTube>> tubes_;  // no entry is empty
  std::deque<std::unique_ptr<KeysOfTube>> flushed_;                // the first is not empty
  std::unordered_map<JobId, UniqueKey*> by_id_;                    // with a cooldown
  IndexedHeap<UniqueKey, DeadlineKey, &UniqueKey::heap_index> cooldowns_;
  Time next_ = kNever;  // when end_next() has something to do; Time::min(): now
};

template <class Visit>
void UniqueKeys::for_each_cooldown(Visit visit) const {
  for (const auto& [name, tube] : tubes_) {
    for (const auto& [key, record] : tube->keys) {
      if (record.has_cooldown()) visit(record);
    }
  }
}

}  // namespace tubed::engine
