// Binlogs: beanstalkd's journal, formats 5 and 7, read as facts.
//
// A binlog is the C structs of the machine that wrote it: little-endian here, with an int of four
// bytes. Nothing in it is checked by a sum, so each length and number is held to what beanstalkd
// can have written, and beyond that a binlog is believed. The reader knows no file: it is given
// their contents, oldest first. It remembers each living job's id, state and order, and no bodies.
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

// Where a file ends before its last record is whole, as a crash leaves it.
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

  // Tells the facts of one file: `Added` for a job's first whole record, `Placed` and `Removed` for
  // what came later. What happened to a job whose whole record is gone is not told.
  //
  // The newest file may end anywhere: the result says so. Each beanstalkd begins a file of its own,
  // so an older one may end in the zeros that it was made of with one torn record before them,
  // which that beanstalkd's successor did without. All else that does not read is an error, with
  // its offset and without the file's name. O(bytes).
  Result<std::optional<TornBinlog>> read(std::string_view image, bool newest);

  // What is there after the files so far.
  std::uint64_t records() const { return records_; }
  BinlogJobs jobs(Time now) const;  // O(jobs)
  // Ids from here on were not used.
  JobId next_job_id() const { return next_job_id_; }

 private:
  struct Entry;
  // A job's place, as little of it as is needed later.
  struct Rest {
    JobState state = JobState::ready;
    std::uint64_t bury_order = 0;  // buried
    Time until;                    // delayed
  };

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
