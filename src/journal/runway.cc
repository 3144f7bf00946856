#include "journal/runway.h"

#include <algorithm>

#include "base/assert.h"

namespace tubed::journal {

void Runway::adopt(std::uint64_t segment, FileId file, std::uint64_t bytes) {
  TUBED_ASSERT(strips_.empty() || segment == last_segment_ + 1);
  strips_.push_back({segment, file, bytes});
  last_segment_ = segment;
  last_is_stuck_ = false;
  bytes_ += bytes;
}

std::size_t Runway::index_of(std::uint64_t segment) const {
  if (strips_.empty() || segment < strips_.front().segment) return strips_.size();
  return std::min<std::size_t>(segment - strips_.front().segment, strips_.size());
}

std::optional<FileId> Runway::file_for(const LogPlace& place) const {
  const std::size_t index = index_of(place.segment);
  if (index == strips_.size() || strips_[index].bytes < place.end) return std::nullopt;
  return strips_[index].file;
}

std::uint64_t Runway::limit_of(std::uint64_t segment) const {
  const std::size_t index = index_of(segment);
  if (index == strips_.size()) return sizes_.segment_bytes;
  const bool grows = index + 1 == strips_.size() && !last_is_stuck_;
  return grows ? std::max(sizes_.segment_bytes, strips_[index].bytes) : strips_[index].bytes;
}

std::uint64_t Runway::ahead_of(const LogPlace& place) const {
  std::uint64_t ahead = 0;
  for (const Strip& strip : strips_) {
    if (strip.segment < place.segment) continue;
    const std::uint64_t used = strip.segment == place.segment ? place.end : kSegmentHeaderBytes;
    if (strip.bytes > used) ahead += strip.bytes - used;
  }
  return ahead;
}

Runway::Step Runway::next_step(const LogPlace& needed) const {
  const std::size_t index = index_of(needed.segment);
  if (index < strips_.size() && strips_[index].bytes < needed.end) {
    const Strip& short_of = strips_[index];
    const std::uint64_t chunk = std::min(short_of.bytes + sizes_.chunk_bytes, sizes_.segment_bytes);
    return {.segment = short_of.segment, .from = short_of.bytes, .to = std::max(chunk, needed.end)};
  }
  const bool needs_another = needed.segment > last_segment_;
  if (!strips_.empty() && !needs_another && strips_.back().bytes < sizes_.segment_bytes) {
    const Strip& last = strips_.back();
    return {.segment = last.segment,
            .from = last.bytes,
            .to = std::min(last.bytes + sizes_.chunk_bytes, sizes_.segment_bytes)};
  }
  const std::uint64_t segment = last_segment_ + 1;
  const std::uint64_t end = segment == needed.segment ? needed.end : 0;
  // All at once or not at all: a file that the disk stops at less is too short to be reused, so
  // that its space would be there but once.
  const std::uint64_t half =
      std::min(std::max(sizes_.segment_bytes / 2, sizes_.chunk_bytes), sizes_.segment_bytes);
  return {.segment = segment, .create = true, .from = 0, .to = std::max(half, end)};
}

void Runway::grow(const Step& step, std::int64_t wall_time,
                  std::function<void(const Outcome&)> grown) {
  TUBED_ASSERT(!growing_);
  growing_ = true;
  if (step.create) {
    storage_.create(segment_name(step.segment), header_of(step.segment, wall_time), step.to,
                    [this, step, grown = std::move(grown)](const Outcome& outcome, FileId file) {
                      growing_ = false;
                      if (outcome.ok()) adopt(step.segment, file, step.to);
                      grown(outcome);
                    });
    return;
  }
  storage_.allocate(strips_[index_of(step.segment)].file, step.from, step.to,
                    [this, step, grown = std::move(grown)](const Outcome& outcome) {
                      growing_ = false;
                      const std::size_t index = index_of(step.segment);
                      if (index + 1 == strips_.size()) last_is_stuck_ = !outcome.ok();
                      if (outcome.ok()) {
                        strips_[index].bytes = step.to;
                        bytes_ += step.to - step.from;
                      }
                      grown(outcome);
                    });
}

void Runway::reuse(std::uint64_t dead, std::uint64_t bytes, std::int64_t wall_time,
                   std::function<void(const Outcome&)> reused) {
  TUBED_ASSERT(!growing_);
  growing_ = true;
  const std::uint64_t segment = last_segment_ + 1;
  storage_.reuse(
      segment_name(dead), segment_name(segment), header_of(segment, wall_time), bytes,
      [this, segment, bytes, reused = std::move(reused)](const Outcome& outcome, FileId file) {
        growing_ = false;
        if (outcome.ok()) adopt(segment, file, bytes);
        last_is_stuck_ = true;
        reused(outcome);
      });
}

std::string Runway::header_of(std::uint64_t segment, std::int64_t wall_time) const {
  return encode_header({.directory = directory_, .sequence = segment, .created = wall_time});
}

Runway::Strip Runway::leave() {
  TUBED_ASSERT(!growing_);
  const Strip strip = strips_.front();
  strips_.pop_front();
  bytes_ -= strip.bytes;
  return strip;
}

}  // namespace tubed::journal
