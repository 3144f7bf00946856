#include "journal/copy.h"

#include <algorithm>

#include "journal/segment.h"

namespace tubed::journal {

namespace {

// The size at which a batch ends. Damage loses a reader at most one batch.
constexpr std::size_t kBatchTarget = 1U << 20;

}  // namespace

void LogCopy::fact(const Fact& fact) {
  if (!result_) return;
  if (batch_at_ != 0 && segment_.size() - batch_at_ >= kBatchTarget) end_batch(false);
  // Leaves room for the header of this batch and for the batch that ends the log.
  const std::size_t needed = record_bytes(fact) + (batch_at_ == 0 ? 2 : 1) * kBatchHeaderBytes;
  if (next_lsn_ > segment_lsn_ && segment_.size() + needed > settings_.segment_bytes) {
    store_segment();
    if (!result_) return;
  }
  if (segment_.empty()) begin_segment();
  if (batch_at_ == 0) begin_batch();
  append_record(segment_, seed_, fact, settings_.clock);
  header_.version = std::max(header_.version, version_needed(fact));
  ++next_lsn_;
  liveness_.apply(fact, record_bytes(fact));
  use_ids_below(id_used_by(fact) + 1);
}

void LogCopy::use_ids_below(JobId next) {
  next_job_id_ = std::max(next_job_id_, next);
}

Result<void> LogCopy::finish() {
  if (!result_) return result_;
  if (batch_at_ != 0) end_batch(false);
  if (segment_.empty()) begin_segment();
  begin_batch();
  end_batch(true);
  store_segment();
  return result_;
}

void LogCopy::begin_segment() {
  seed_ = seed_of(sequence_);
  segment_lsn_ = next_lsn_;
  liveness_.open_segment(sequence_, kSegmentHeaderBytes);
  header_ = {.directory = settings_.directory, .sequence = sequence_, .created = settings_.now};
  segment_ = encode_header(header_);
}

void LogCopy::begin_batch() {
  batch_at_ = segment_.size();
  batch_lsn_ = next_lsn_;
  segment_.append(kBatchHeaderBytes, '\0');
}

void LogCopy::end_batch(bool clean) {
  // A segment is stored as a whole, after the previous segment is durable.
  const Lsn durable = clean ? next_lsn_ : segment_lsn_;
  write_batch_header({segment_.data() + batch_at_, kBatchHeaderBytes}, seed_,
                     {.directory = settings_.directory,
                      .offset = batch_at_,
                      .lsn = batch_lsn_,
                      .durable = durable,
                      .next_job_id = next_job_id_,
                      .written = settings_.now,
                      .facts = static_cast<std::uint32_t>(next_lsn_ - batch_lsn_),
                      .jobs = liveness_.jobs(),
                      .clean = clean});
  batch_at_ = 0;
}

void LogCopy::store_segment() {
  if (batch_at_ != 0) end_batch(false);
  segment_.replace(0, kSegmentHeaderBytes, encode_header(header_));
  result_ = storage_.store(segment_name(sequence_), segment_);
  ++sequence_;
  segment_.clear();
  segment_lsn_ = next_lsn_;
}

}  // namespace tubed::journal
