// Binlogs: reads beanstalkd's journal, formats 5 and 7, as facts.
//
// A binlog consists of C structs of the machine that wrote it: little-endian here, with 4-byte
// ints. It has no checksums, so the reader checks that each length and number is in the range that
// beanstalkd can have written. The reader does no I/O: the caller passes the contents of the files,
// oldest first. Memory: the id, state and order of each job, but no bodies.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "facts/fact.h"
#include "journal/record.h"

namespace tubed::journal {

// Returns the number of "binlog.17", at least 1, or nothing if it is not the name of a binlog.
std::optional<std::uint64_t> binlog_number(std::string_view name);

// Where a file ends within its last record, as a crash leaves it: only zeros follow.
struct TornBinlog {
  std::uint64_t offset = 0;
  std::string_view reason;  // a literal
};

struct BinlogJobs {
  std::uint64_t ready = 0;
  std::uint64_t delayed = 0;
  std::uint64_t buried = 0;
};

class BinlogReader {
 public:
  BinlogReader(const WallClock& clock, FactSink& sink) : clock_(clock), sink_(sink) {}

  // Emits the facts of one file: `Added` for the first whole record of a job, `Placed` and
  // `Removed` for later records. Skips records of a job without a whole record.
  //
  // A file may end with a torn record and the zeros that the file was created with, because each
  // beanstalkd begins a new file and ignores such an end; the newest file may also end within the
  // record. The result says where. Anything else that cannot be read is an error, even in the
  // newest file; it has the offset but not the name of the file. O(bytes).
  Result<std::optional<TornBinlog>> read(std::string_view image, bool newest);

  // The state after the files read so far.
  std::uint64_t records() const { return records_; }
  BinlogJobs jobs(Time now) const;  // O(jobs)
  // This id and all greater ids are unused.
  JobId next_job_id() const { return next_job_id_; }

 private:
  struct Entry;
  struct Format;
  // The parts of a job's place that later records need.
  struct Rest {
    JobState state = JobState::ready;
    std::uint64_t bury_order = 0;  // if buried
    Time until;                    // if delayed
  };

  bool is_torn(const Entry& entry, std::string_view rest, const Format& format, bool newest) const;
  bool has_record(std::string_view bytes, const Format& format) const;
  Result<void> tell(const Entry& entry);
  Placement placement_of(const Entry& entry) const;

  WallClock clock_;
  FactSink& sink_;
  std::unordered_map<JobId, Rest> resting_;
  std::uint64_t next_bury_order_ = 1;
  std::uint64_t records_ = 0;
  JobId next_job_id_ = 1;
};

}  // namespace tubed::journal
