#include "journal/copy.h"

#include <algorithm>

#include "journal/segment.h"

namespace tubed::journal {

namespace {

// A group is closed once it has so much: what damage takes from a reader is a group at most.
constexpr std::size_t kGroupTarget = 1U << 20;

}  // namespace

void LogCopy::fact(const Fact& fact) {
  if (!result_) return;
  if (group_at_ != 0 && segment_.size() - group_at_ >= kGroupTarget) end_group(false);
  // With room for the group before it and for the one that ends the log.
  const std::size_t needed = record_bytes(fact) + (group_at_ == 0 ? 2 : 1) * kGroupBytes;
  if (number_ > segment_number_ && segment_.size() + needed > settings_.segment_bytes) {
    store_segment();
    if (!result_) return;
  }
  if (segment_.empty()) begin_segment();
  if (group_at_ == 0) begin_group();
  append_record(segment_, seed_, fact, settings_.clock);
  ++number_;
  ledger_.apply(fact, record_bytes(fact));
  use_ids_below(id_used_by(fact) + 1);
}

void LogCopy::use_ids_below(JobId next) {
  next_job_id_ = std::max(next_job_id_, next);
}

Result<void> LogCopy::finish() {
  if (!result_) return result_;
  if (group_at_ != 0) end_group(false);
  if (segment_.empty()) begin_segment();
  begin_group();
  end_group(true);
  store_segment();
  return result_;
}

void LogCopy::begin_segment() {
  seed_ = seed_of(sequence_);
  segment_number_ = number_;
  ledger_.open_segment(sequence_, kSegmentHeaderBytes);
  segment_ = encode_header(
      {.directory = settings_.directory, .sequence = sequence_, .created = settings_.now});
}

void LogCopy::begin_group() {
  group_at_ = segment_.size();
  group_number_ = number_;
  segment_.append(kGroupBytes, '\0');
}

void LogCopy::end_group(bool clean) {
  // A segment is stored when the one before it is durable, and is itself stored as a whole.
  const Lsn durable = clean ? number_ : segment_number_;
  write_group({segment_.data() + group_at_, kGroupBytes}, seed_,
              {.directory = settings_.directory,
               .offset = group_at_,
               .number = group_number_,
               .durable = durable,
               .next_job_id = next_job_id_,
               .written = settings_.now,
               .facts = static_cast<std::uint32_t>(number_ - group_number_),
               .jobs = ledger_.jobs(),
               .clean = clean});
  group_at_ = 0;
}

void LogCopy::store_segment() {
  if (group_at_ != 0) end_group(false);
  result_ = storage_.store(segment_name(sequence_), segment_);
  ++sequence_;
  segment_.clear();
  segment_number_ = number_;
}

}  // namespace tubed::journal
