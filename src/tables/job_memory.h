// JobMemory: the memory that jobs count as, against limits.job_memory.
//
// A job counts as its body, its tags, and a fixed overhead. This is claimed when its put is
// announced and before its bytes arrive: otherwise clients could fill the memory with bodies that
// never end. The functions below take the bytes of the body and the tags together.
#pragma once

#include <cstdint>

#include "facts/types.h"
#include "tables/job.h"
#include "tables/job_table.h"

namespace tubed::engine {

class JobMemory {
 public:
  // `limits` outlives it.
  explicit JobMemory(const Limits& limits) : limits_(limits) {}

  // The bytes that a job with a body of this size counts as.
  static constexpr std::uint64_t cost_of(std::uint32_t bytes) { return kOverheadBytes + bytes; }

  // Returns false and claims nothing if the job would exceed the limit. O(1).
  bool claim(std::uint32_t bytes) {
    const std::uint64_t cost = cost_of(bytes);
    if (!has_room_for(cost)) {
      refused_ = cost;
      return false;
    }
    refused_ = 0;
    bytes_ += cost;
    return true;
  }
  // Claims without a limit, for a job that was accepted earlier.
  void restore(std::uint32_t bytes) { bytes_ += cost_of(bytes); }
  // Precondition: this much was claimed.
  void give_back(std::uint32_t bytes) { give_back_part(cost_of(bytes)); }
  // A unique key may outlive its job, and a policy may add a record. Claims or gives back the
  // memory of that alone.
  void restore_part(std::uint64_t bytes) { bytes_ += bytes; }
  void give_back_part(std::uint64_t bytes) {
    TUBED_ASSERT(bytes_ >= bytes);
    bytes_ -= bytes;
  }

  // True if the last claim was refused and would be refused again.
  bool is_short() const { return refused_ != 0 && !has_room_for(refused_); }
  bool has_room_for(std::uint64_t bytes) const {
    return bytes_ + bytes <= limits_.job_memory_bytes;
  }
  // The bytes of all jobs and of all bodies that are still arriving.
  std::uint64_t bytes() const { return bytes_; }

 private:
  // The cost of a job without its body: its record and its history, its heap entry, its place in
  // the job table, its body's header, and the rounding of sizes. A job without a history takes 80
  // bytes less. A job that has outlived all its neighbours in the table takes 150 bytes more.
  static constexpr std::uint64_t kOverheadBytes = sizeof(Job) + sizeof(JobHistory) +
                                                  sizeof(ReadyKey) + sizeof(void*) +
                                                  JobTable::kBytesPerJob + 16;

  const Limits& limits_;
  std::uint64_t bytes_ = 0;
  std::uint64_t refused_ = 0;  // the cost of the last claim if it was refused, else 0
};

}  // namespace tubed::engine
