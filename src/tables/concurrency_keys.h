// ConcurrencyKeys: the keys of jobs of which clients may hold only a few at once [extension: con].
//
// At most `limit` jobs with a key are reserved at once, in all tubes. The limit is the smallest
// that a job with the key has, so it follows from the jobs, and is the same after a restart.
//
// No reserve looks for a job whose key has room. Of the ready jobs of a key in a tube only the
// first is exposed: it is in the tube's heap of ready jobs, from which jobs are given, as long
// as the key has room. All others are parked, in a heap of the tube of their own. When the exposed
// job is reserved or leaves the heap in another way, the next job takes its place.
//
// A key may have jobs in very many tubes, and loses and gets room with each reserve and release. So
// not all tubes are visited:
//
// 1. A wide key, which has ready jobs in many tubes, leaves them exposed when its room is used up
//    (ConcurrencyKey::late).
// 2. While such a key exists, a command that takes the first ready job of a tube first parks the
//    jobs before it whose keys have no room (park_blocked). That tube is then in
//    ConcurrencyKey::hidden.
// 3. When the key has room again, only the tubes in `hidden` are visited: those that a reserve has
//    come across, or in which a session waits.
//
// Invariant: a job that is ready and has a key is in ReadyOfKey::jobs of its tube. The first of
// them is exposed if the key has room, and may be if the key is late; no other is. A tube without
// an exposed job of the key is in `hidden`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/intrusive_list.h"
#include "facts/types.h"
#include "tables/job.h"
#include "tables/job_memory.h"
#include "tables/serve_queue.h"
#include "tables/tube_table.h"

namespace tubed::engine {

// The ready jobs of a key in one tube.
struct ReadyOfKey {
  Tube* tube = nullptr;
  std::uint16_t epoch = 0;  // other than the tube's: they are flushed
  ReadyOfKeyHeap jobs;
  Job* exposed = nullptr;
  bool is_hidden = false;  // in ConcurrencyKey::hidden
  ListLinks<ReadyOfKey> links;
};

struct ConcurrencyKey {
  std::string_view name;
  std::uint64_t jobs = 0;                         // that have the key, in any state
  std::uint64_t reserved = 0;                     // of these
  std::map<std::uint32_t, std::uint64_t> limits;  // how many jobs have each
  // By the tube's number and its epoch.
  std::map<std::pair<std::uint64_t, std::uint16_t>, ReadyOfKey> tubes;
  IntrusiveList<ReadyOfKey, &ReadyOfKey::links> hidden;

  bool open = true;   // it had room when its jobs were exposed or parked last
  bool late = false;  // it has no room, and may have exposed jobs

  bool has_room() const { return reserved < limits.begin()->first; }
};

// True: as many jobs with its key are reserved as may be. O(1).
inline bool is_blocked(const Job& job) {
  const ConcurrencyRecord* record = job.concurrency();
  return record != nullptr && !record->key->has_room();
}

class ConcurrencyKeys {
 public:
  // All of them outlive it.
  ConcurrencyKeys(const Limits& limits, TubeTable& tubes, ServeQueue& serve_queue,
                  JobMemory& memory, std::uint64_t& entries_walked)
      : limits_(limits),
        tubes_(tubes),
        serve_queue_(serve_queue),
        memory_(memory),
        entries_walked_(entries_walked) {}

  // The bytes that a job with the key counts as: its own record, and a part of the key's that is
  // enough for a job that has the key alone.
  static std::uint32_t cost_of(std::string_view key) {
    return kBytesPerJob + static_cast<std::uint32_t>(key.size());
  }

  // The room of a key changes with add(), remove(), begin_reservation() and end_reservation(). Each
  // costs O(log n), and O(hidden tubes) if the key gains room. A key whose room is used up costs
  // O(tubes with ready jobs of the key), unless it is wide.

  // Gives the job the key. Precondition: it has tags, its memory was claimed, and it is
  // not ready.
  void add(Job& job, std::string_view key, std::uint32_t limit);
  // The job no longer has a key: it is about to be removed, and may be flushed.
  void remove(Job& job);

  // A job with a key has become ready. O(log n).
  [[gnu::cold]] void add_ready(Job& job);
  // It is ready, and will no longer be. O(log n).
  [[gnu::cold]] void erase_ready(Job& job);
  // A job with a key was reserved, or no longer is.
  [[gnu::cold]] void begin_reservation(const Job& job);
  [[gnu::cold]] void end_reservation(const Job& job);

  // True: a key is late. Then whatever takes the first ready job of a tube calls park_blocked()
  // before.
  bool has_late() const { return late_keys_ > 0; }
  // Parks the exposed jobs of late keys that are before all other ready jobs of the tube, or of the
  // tubes that the session watches. O(log n) for each.
  [[gnu::cold]] void park_blocked(Tube* tube);
  [[gnu::cold]] void park_blocked(const Session& session);

  // In place of Tube::first() where a key may be late. O(log n) for each job that is parked.
  Job* first_of(Tube& tube, JobState state) {
    if (state == JobState::ready && has_late()) [[unlikely]]
      park_blocked(&tube);
    return tube.first(state);
  }

  // The keys with a job that a client holds.
  std::uint64_t reserved_keys() const { return reserved_keys_; }

  // Calls visit(const ConcurrencyKey&) for each key. For tests.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [name, key] : keys_) visit(key);
  }

 private:
  // Measured for a job whose key and tube no other job has.
  static constexpr std::uint32_t kBytesPerJob = 536;

  bool is_wide(const ConcurrencyKey& key) const;
  void set_late(ConcurrencyKey& key, bool late);
  void expose_first(ConcurrencyKey& key, ReadyOfKey& ready);
  [[gnu::cold]] void update_room(ConcurrencyKey& key);
  // Counts that the key loses a job with this limit. False: that was its last job, and the key is
  // gone.
  bool drop_job(ConcurrencyKey& key, std::uint32_t limit);

  const Limits& limits_;
  TubeTable& tubes_;
  ServeQueue& serve_queue_;
  JobMemory& memory_;
  std::uint64_t& entries_walked_;
  std::map<std::string, ConcurrencyKey, std::less<>> keys_;  // a tree: clients choose the names
  std::uint64_t reserved_keys_ = 0;
  std::uint64_t late_keys_ = 0;
};

}  // namespace tubed::engine
