#include "journal/preallocator.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace tubed::journal {

void Preallocator::adopt(const SegmentHeader& header, FileId file, std::uint64_t bytes) {
  TUBED_ASSERT(files_.empty() || header.sequence == last_segment_ + 1);
  files_.push_back({header.sequence, file, bytes, header});
  last_segment_ = header.sequence;
  last_stays_ = false;
  bytes_ += bytes;
}

std::size_t Preallocator::index_of(std::uint64_t segment) const {
  if (files_.empty() || segment < files_.front().segment) return files_.size();
  return std::min<std::size_t>(segment - files_.front().segment, files_.size());
}

std::optional<FileId> Preallocator::file_for(const LogPlace& place) const {
  const std::size_t index = index_of(place.segment);
  if (index == files_.size() || files_[index].bytes < place.end) return std::nullopt;
  return files_[index].file;
}

std::uint64_t Preallocator::limit_of(std::uint64_t segment) const {
  const std::size_t index = index_of(segment);
  if (index == files_.size()) return sizes_.segment_bytes;
  const bool grows = index + 1 == files_.size() && !last_stays_;
  return grows ? std::max(sizes_.segment_bytes, files_[index].bytes) : files_[index].bytes;
}

std::uint64_t Preallocator::bytes_beyond(const LogPlace& place) const {
  std::uint64_t ahead = 0;
  for (const OpenFile& file : files_) {
    if (file.segment < place.segment) continue;
    const std::uint64_t used = file.segment == place.segment ? place.end : kSegmentHeaderBytes;
    if (file.bytes > used) ahead += file.bytes - used;
  }
  return ahead;
}

Preallocator::Step Preallocator::next_step(const LogPlace& needed) const {
  const std::size_t index = index_of(needed.segment);
  if (index < files_.size() && files_[index].bytes < needed.end) {
    const OpenFile& short_of = files_[index];
    const std::uint64_t chunk = std::min(short_of.bytes + sizes_.chunk_bytes, sizes_.segment_bytes);
    return {.segment = short_of.segment, .from = short_of.bytes, .to = std::max(chunk, needed.end)};
  }
  const bool needs_another = needed.segment > last_segment_;
  if (!files_.empty() && !needs_another && files_.back().bytes < sizes_.segment_bytes) {
    const OpenFile& last = files_.back();
    return {.segment = last.segment,
            .from = last.bytes,
            .to = std::min(last.bytes + sizes_.chunk_bytes, sizes_.segment_bytes)};
  }
  const std::uint64_t segment = last_segment_ + 1;
  const std::uint64_t end = segment == needed.segment ? needed.end : 0;
  // In one step: if the disk refused the second of two steps, the file would be too short to be
  // reused.
  const std::uint64_t half =
      std::min(std::max(sizes_.segment_bytes / 2, sizes_.chunk_bytes), sizes_.segment_bytes);
  return {.segment = segment, .create = true, .from = 0, .to = std::max(half, end)};
}

void Preallocator::grow(const Step& step, std::int64_t wall_time,
                        std::function<void(const Outcome&)> grown) {
  TUBED_ASSERT(!growing_);
  growing_ = true;
  if (step.create) {
    const SegmentHeader header = header_of(step.segment, wall_time);
    storage_.create(
        segment_name(step.segment), encode_header(header), step.to,
        [this, header, step, grown = std::move(grown)](const Outcome& outcome, FileId file) {
          growing_ = false;
          if (outcome.ok()) adopt(header, file, step.to);
          grown(outcome);
        });
    return;
  }
  storage_.allocate(files_[index_of(step.segment)].file, step.from, step.to,
                    [this, step, grown = std::move(grown)](const Outcome& outcome) {
                      growing_ = false;
                      const std::size_t index = index_of(step.segment);
                      if (index + 1 == files_.size()) last_stays_ = !outcome.ok();
                      if (outcome.ok()) {
                        files_[index].bytes = step.to;
                        bytes_ += step.to - step.from;
                      }
                      grown(outcome);
                    });
}

void Preallocator::reuse(std::uint64_t dead, std::uint64_t bytes, std::int64_t wall_time,
                         std::function<void(const Outcome&)> reused) {
  TUBED_ASSERT(!growing_);
  growing_ = true;
  const std::uint64_t segment = last_segment_ + 1;
  const SegmentHeader header = header_of(segment, wall_time);
  storage_.reuse(
      segment_name(dead), segment_name(segment), encode_header(header), bytes,
      [this, header, bytes, reused = std::move(reused)](const Outcome& outcome, FileId file) {
        growing_ = false;
        if (outcome.ok()) adopt(header, file, bytes);
        last_stays_ = true;
        reused(outcome);
      });
}

SegmentHeader Preallocator::header_of(std::uint64_t segment, std::int64_t wall_time) const {
  return {.directory = directory_, .sequence = segment, .created = wall_time};
}

void Preallocator::raise_version(std::uint64_t segment, std::uint32_t version, Sync sync,
                                 std::function<void(const Outcome&)> raised) {
  OpenFile& file = files_[index_of(segment)];
  SegmentHeader header = file.header;
  header.version = std::max(version, std::exchange(header.torn_version, 0));
  raised_header_ = encode_header(header);
  storage_.write(file.file, 0, {raised_header_}, sync,
                 [this, header, raised = std::move(raised)](const Outcome& outcome) {
                   if (outcome.ok()) files_[index_of(header.sequence)].header = header;
                   raised(outcome);
                 });
}

Preallocator::OpenFile Preallocator::take_first() {
  TUBED_ASSERT(!growing_);
  const OpenFile file = files_.front();
  files_.pop_front();
  bytes_ -= file.bytes;
  return file;
}

}  // namespace tubed::journal
