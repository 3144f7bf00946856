// Binlogs: beanstalkd's journal, formats 5 and 7, read as facts.
//
// A binlog is the C structs of the machine that wrote it: little-endian here, with an int of four
// bytes. It has no checksums, so each length and number is compared with the range that beanstalkd
// can have written, and taken as it is within that range. The reader does no I/O: the caller passes
// the contents of the files, oldest first. Memory: the id, state and order of each job, no bodies.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "engine/fact.h"
#include "journal/record.h"

namespace tubed::journal {

// The number of "binlog.17", from 1 on. Nothing: not the name of a binlog.
std::optional<std::uint64_t> binlog_number(std::string_view name);

// Where a file ends before its last record is whole, as a crash leaves it: nothing follows but
// zeros.
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

  // Emits the facts of one file: `Added` for a job's first whole record, `Placed` and `Removed` for
  // later records. Records of a job without a whole record are skipped.
  //
  // A file may end with a torn record and the zeros that the file was created with, because each
  // beanstalkd begins a new file and ignores such an end; the newest file may also end within the
  // record. The result says where. Anything else that cannot be read is an error, with its offset
  // and without the file's name, also in the newest file. O(bytes).
  Result<std::optional<TornBinlog>> read(std::string_view image, bool newest);

  // After the files so far.
  std::uint64_t records() const { return records_; }
  BinlogJobs jobs(Time now) const;  // O(jobs)
  // No id from here on was used.
  JobId next_job_id() const { return next_job_id_; }

 private:
  struct Entry;
  struct Format;
  // The parts of a job's place that later records need.
  struct Rest {
    JobState state = JobState::ready;
    std::uint64_t bury_order = 0;  // buried
    Time until;                    // delayed
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
