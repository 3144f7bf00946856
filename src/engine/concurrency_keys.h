// ConcurrencyKeys: the keys of jobs of which clients may hold only a few at once [extension: con].
//
// At most `limit` jobs with a key are reserved at once, in all tubes. The limit is the smallest
// that a job with the key has, so it follows from the jobs, and is the same after a restart.
//
// No reserve looks for a job whose key has room. Of the ready jobs of a key in a tube only the
// first is exposed: it is in the tube's heap of ready jobs, from which jobs are given, as long
// as the key has room. All others are parked, in a heap of the tube of their own. When the exposed
// job is reserved or goes another way, the next one takes its place (engine/concurrency.cc).
//
// A key may have jobs in very many tubes, and loses and gets room with each reserve and release. So
// the tubes are not all looked at:
//
// 1. A wide key, which has ready jobs in many tubes, leaves them exposed when it has no room any
//    more (ConcurrencyKey::late).
// 2. While there is such a key, whatever takes the first ready job of a tube parks those of keys
//    without room before it (Engine::park_blocked). That tube is then in ConcurrencyKey::hidden.
// 3. When the key has room again, only the tubes in `hidden` are looked at: those that a reserve
// has
//    come across, or in which a session waits.
//
// Invariant: a job that is ready and has a key is in ReadyOfKey::jobs of its tube. The first of
// them is exposed if the key has room, and may be if the key is late; no other is. A tube without
// an exposed job of the key is in `hidden`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/intrusive_list.h"
#include "engine/job.h"

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

class ConcurrencyKeys {
 public:
  // The bytes that a job with the key counts as: its own record, and a part of the key's that is
  // enough for a job that has the key alone.
  static std::uint32_t cost_of(std::string_view key) {
    return kBytesPerJob + static_cast<std::uint32_t>(key.size());
  }

  // A job has the key from now on. O(log keys + log limits).
  ConcurrencyKey* add(std::string_view key, std::uint32_t limit) {
    auto found = keys_.find(key);
    if (found == keys_.end()) {
      found = keys_.try_emplace(std::string(key)).first;
      found->second.name = found->first;
    }
    ++found->second.jobs;
    ++found->second.limits[limit];
    return &found->second;
  }
  // It no longer has. False: no job has the key any more, and it is gone. The same cost.
  bool remove(ConcurrencyKey* key, std::uint32_t limit) {
    const auto count = key->limits.find(limit);
    if (--count->second == 0) key->limits.erase(count);
    if (--key->jobs > 0) return true;
    TUBED_ASSERT(key->reserved == 0 && key->tubes.empty() && key->hidden.empty());
    set_late(*key, false);
    keys_.erase(keys_.find(key->name));
    return false;
  }
  void count_reserved(ConcurrencyKey* key) {
    if (key->reserved++ == 0) ++reserved_keys_;
  }
  void uncount_reserved(ConcurrencyKey* key) {
    if (--key->reserved == 0) --reserved_keys_;
  }

  void set_late(ConcurrencyKey& key, bool late) {
    if (key.late == late) return;
    key.late = late;
    late ? ++late_keys_ : --late_keys_;
  }
  // True: a key is late.
  bool has_late() const { return late_keys_ > 0; }

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

  std::map<std::string, ConcurrencyKey, std::less<>> keys_;  // a tree: clients choose the names
  std::uint64_t reserved_keys_ = 0;
  std::uint64_t late_keys_ = 0;
};

}  // namespace tubed::engine
