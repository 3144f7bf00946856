// LogCopy: writes a new journal into an empty directory, fact by fact, for salvage and import. It
// blocks. It holds one segment in memory, and to count the jobs about 10 bytes for each job that
// exists (150 if no job with a neighbouring id exists).
//
// The result is not a journal until finish() has succeeded. The caller ensures that an incomplete
// copy is not used.
#pragma once

#include <string>

#include "base/result.h"
#include "facts/fact.h"
#include "journal/record.h"
#include "journal/segment.h"
#include "journal/segment_liveness.h"
#include "journal/storage.h"

namespace tubed::journal {

class LogCopy final : public FactSink {
 public:
  struct Settings {
    std::uint64_t directory = 0;      // identity of the new journal
    std::uint64_t segment_bytes = 0;  // limit of a segment, unless a single record is larger
    WallClock clock;
    std::int64_t now = 0;  // wall clock, nanoseconds since 1970
  };

  LogCopy(Storage& storage, const Settings& settings) : storage_(storage), settings_(settings) {}

  // Writes the fact. After a failed write, writes nothing more, and finish() returns the error.
  void fact(const Fact& fact) override;
  // Marks all ids before `next` as used, whether or not jobs have them.
  void use_ids_below(JobId next);
  // Makes everything durable, with a clean end. Without facts the journal has one empty segment.
  Result<void> finish();

  bool has_job(JobId id) const { return liveness_.segment_of(id) != 0; }
  // Greater than the ids of all facts so far.
  JobId next_job_id() const { return next_job_id_; }
  // Written so far.
  std::uint64_t facts() const { return next_lsn_; }

 private:
  void begin_segment();
  void begin_batch();
  void end_batch(bool clean);
  void store_segment();

  Storage& storage_;
  Settings settings_;
  SegmentLiveness liveness_;  // for the number of jobs
  std::string segment_;       // its bytes so far; empty: not begun
  SegmentHeader header_;      // of this segment
  std::uint64_t sequence_ = 1;
  std::uint32_t seed_ = 0;
  Lsn segment_lsn_ = 0;       // of the segment's first fact; earlier facts are on disk
  std::size_t batch_at_ = 0;  // the offset of the batch header; 0: no batch is open
  Lsn batch_lsn_ = 0;
  Lsn next_lsn_ = 0;  // of the next fact
  JobId next_job_id_ = 1;
  Result<void> result_;
};

}  // namespace tubed::journal
