// Keeper: who makes the facts durable, as commands see it. Without one, jobs are in memory only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/histogram.h"
#include "engine/fact.h"

namespace tubed::commands {

// What stats tells, in the words of beanstalkd's binlog.
struct KeeperCounts {
  std::uint64_t oldest_segment = 0;
  std::uint64_t current_segment = 0;
  std::uint64_t records_migrated = 0;
  std::uint64_t records_written = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t max_file_bytes = 0;  // as set; 0: no bound
  std::uint64_t commits = 0;
  HistogramView commit_times;  // valid until the keeper's next change, as is the next
  HistogramView commit_records;
  Duration recovery{};  // how long it took to have the jobs back
  bool full = false;    // writing waits for room
};

class Keeper : public FactSink {
 public:
  // False: there is no room for one more such job. O(1).
  virtual bool has_room_for_job(std::size_t tube_bytes, std::size_t body_bytes) const = 0;
  // Too many facts wait to be written: a command that may emit one waits. Asked before each such
  // command.
  virtual bool congested() const = 0;
  virtual KeeperCounts counts() const = 0;
  // The segment in which a job begins. Precondition: there is such a job. O(1).
  virtual std::uint64_t segment_of(JobId id) const = 0;

 protected:
  ~Keeper() = default;
};

}  // namespace tubed::commands
