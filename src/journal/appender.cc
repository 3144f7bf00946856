#include "journal/appender.h"

#include <algorithm>

namespace tubed::journal {

Lsn Appender::append(const Fact& fact) {
  const std::uint64_t bytes = record_bytes(fact);
  fact_bytes_ += bytes;
  ++facts_written_;
  add(fact, bytes);
  return appended_;
}

std::uint64_t Appender::append_copy(const Fact& fact) {
  const std::uint64_t bytes = record_bytes(fact);
  ++records_copied_;
  if (context_.options.reservations && added_in(fact) != nullptr) make_room(bytes + kHeldBytes);
  add(fact, bytes);
  return bytes;
}

void Appender::make_room(std::uint64_t bytes) {
  room_ = 0;
  batch_for(bytes);
  room_ = bytes;
}

void Appender::add(const Fact& fact, std::uint64_t record_bytes) {
  space_.use(record_bytes);
  CommitBatch& batch = batch_for(record_bytes);
  batch.records.add(fact, context_.clock);
  batch.version = std::max(batch.version, version_needed(fact));
  pending_bytes_ += record_bytes;
  liveness_.apply(fact, record_bytes);
  next_job_id_ = std::max(next_job_id_, id_used_by(fact) + 1);
  ++batch.header.facts;
  batch.header.jobs = liveness_.jobs();
  ++appended_;
}

// Returns the pending batch that the next record joins: the last batch or a new batch after it. If
// the record does not fit into the segment, the new batch is in the next segment.
CommitBatch& Appender::batch_for(std::uint64_t record_bytes) {
  if (room_ > 0) [[unlikely]] {
    if (record_bytes <= room_) {
      room_ -= record_bytes;
      return pending_.back();
    }
    room_ = 0;
  }
  bool joins = !pending_.empty();
  const LogPlace head = liveness_.head();
  const std::uint64_t needed = record_bytes + (joins ? 0 : kBatchHeaderBytes);
  if (head.end + needed > preallocator_.limit_of(head.segment) && head.end > kSegmentHeaderBytes) {
    joins = false;
    closer_.end_segment(appended_);
    space_.forget_slack();
    liveness_.open_segment(head.segment + 1, kSegmentHeaderBytes);
  }
  if (joins) return pending_.back();
  const LogPlace place = liveness_.head();
  pending_.push_back({.segment = place.segment,
                      .header = {.directory = context_.directory,
                                 .offset = place.end,
                                 .lsn = appended_,
                                 .next_job_id = next_job_id_,
                                 .jobs = liveness_.jobs()},
                      .records = Batch(seed_of(place.segment))});
  space_.use(kBatchHeaderBytes);
  liveness_.use(kBatchHeaderBytes);
  pending_bytes_ += kBatchHeaderBytes;
  return pending_.back();
}

void Appender::take_pending(std::vector<CommitBatch>& batches) {
  room_ = 0;
  batches.swap(pending_);
  pending_bytes_ = 0;
}

}  // namespace tubed::journal
