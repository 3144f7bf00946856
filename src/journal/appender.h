// Appender: encodes facts at the head of the log, into the batches that the next commit will write.
//
// A batch lies in one segment. When the segment is full, the head moves to the next segment and
// begins a new batch there; the file of that segment need not exist yet. A record larger than a
// segment gets a segment of its own. Records that must survive a crash together or not at all lie
// in one batch, for which make_room() is called first: a unit of facts, an entry of a cluster, and
// a copy with its `Held`. Each record is accounted for in SegmentLiveness and in Space when it is
// appended.
//
// Invariant: the pending batches follow each other without a gap, both in positions and on disk,
// and end at the head of the log.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "facts/fact_log.h"
#include "journal/batch.h"
#include "journal/context.h"
#include "journal/format.h"
#include "journal/preallocator.h"
#include "journal/segment_closer.h"
#include "journal/segment_liveness.h"
#include "journal/space.h"

namespace tubed::journal {

// Consecutive records in one segment that are written together.
struct CommitBatch {
  std::uint64_t segment = 0;
  // `durable` and `written` are set when the batch is written.
  BatchHeader header;
  Batch records;
  std::uint32_t version = kFirstVersion;  // of the format, as its records need

  // Returns the position after its last fact.
  Lsn end_lsn() const { return header.lsn + header.facts; }
  std::uint64_t end_offset() const { return header.offset + records.bytes(); }
};

class Appender {
 public:
  // Continues the log at the end of the newest segment of `liveness`, with fact `begin`.
  Appender(Context& context, SegmentLiveness& liveness, const Preallocator& preallocator,
           Space& space, SegmentCloser& closer, Lsn begin, JobId next_job_id)
      : context_(context),
        liveness_(liveness),
        preallocator_(preallocator),
        space_(space),
        closer_(closer),
        appended_(begin),
        next_job_id_(next_job_id) {}

  // Appends a fact and returns the position after it. O(bytes).
  Lsn append(const Fact& fact);
  // Appends a copy of a record for compaction, and returns its size. An `Added` and its `Held` are
  // in the same batch.
  std::uint64_t append_copy(const Fact& fact);
  // Places the next records, up to `bytes` bytes, in one batch. At least one record must follow
  // before the pending batches are taken. O(1).
  void make_room(std::uint64_t bytes);
  // Begins a batch without facts. Precondition: no batch is pending.
  CommitBatch& begin_batch() { return batch_for(0); }

  // Returns how many facts were appended.
  Lsn appended() const { return appended_; }
  const std::vector<CommitBatch>& pending() const { return pending_; }
  std::uint64_t pending_bytes() const { return pending_bytes_; }
  // Moves the pending batches into `batches`, which must be empty.
  void take_pending(std::vector<CommitBatch>& batches);

  // Returns the bytes of facts, not counting copies, since the last call.
  std::uint64_t take_fact_bytes() { return std::exchange(fact_bytes_, 0); }
  // Since the start.
  std::uint64_t facts_written() const { return facts_written_; }
  std::uint64_t records_copied() const { return records_copied_; }

 private:
  void add(const Fact& fact, std::uint64_t record_bytes);
  CommitBatch& batch_for(std::uint64_t record_bytes);

  Context& context_;
  SegmentLiveness& liveness_;
  const Preallocator& preallocator_;
  Space& space_;
  SegmentCloser& closer_;

  Lsn appended_;
  JobId next_job_id_;
  std::vector<CommitBatch> pending_;
  std::uint64_t pending_bytes_ = 0;
  std::uint64_t room_ = 0;  // bytes left of the last make_room()
  std::uint64_t fact_bytes_ = 0;
  std::uint64_t facts_written_ = 0;
  std::uint64_t records_copied_ = 0;
};

}  // namespace tubed::journal
