// Segments: the files of a journal, their names, their headers, and how one is read.
//
// Segment files are numbered without a gap. Each begins with a header that was durable before the
// file got its name, so that a header that does not read is damage and never a crash's trace.
// docs/journal-format.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "journal/format.h"
#include "journal/record.h"
#include "journal/storage.h"

namespace tubed::journal {

inline constexpr std::size_t kSegmentHeaderBytes = 64;

// "journal.0000000001"; numbers begin at 1.
std::string segment_name(std::uint64_t sequence);
// Nothing: not the name of a segment.
std::optional<std::uint64_t> sequence_of(std::string_view name);

// What a segment's records are checked with: a record of another segment does not pass.
std::uint32_t seed_of(std::uint64_t sequence);

struct SegmentHeader {
  std::uint64_t directory = 0;  // the journal's identity
  std::uint64_t sequence = 0;
  std::int64_t created = 0;  // wall clock, nanoseconds since 1970
};

std::string encode_header(const SegmentHeader& header);
// The error says what is wrong with it, to stand behind the file's name: not a segment, another
// version, damaged, another segment's name.
Result<SegmentHeader> decode_header(std::string_view image, std::uint64_t sequence);
// Of a header that is whole, also of a version that this program does not read.
std::optional<std::uint32_t> version_of(std::string_view image);
// The header is whole, and of a version that this program does not read: no sign of damage.
bool has_unknown_version(std::string_view image);

struct SegmentFile {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
};
// What the directory has, oldest first. Gaps are the caller's business.
Result<std::vector<SegmentFile>> list_segments(Storage& storage);
// The whole file.
Result<std::string> read_segment(Storage& storage, std::uint64_t sequence);

// Walks through the records of one segment.
class SegmentReader {
 public:
  // `image` is the whole file, with its header, and outlives the reader. The records are read in
  // the format that the header names; in the current one if the header is damaged.
  SegmentReader(std::string_view image, std::uint64_t sequence, const WallClock& clock);
  // In the format given, which outlives the reader.
  SegmentReader(std::string_view image, std::uint64_t sequence, const WallClock& clock,
                const Format& format)
      : image_(image), seed_(seed_of(sequence)), clock_(clock), format_(&format) {}

  // Where the next record is looked for.
  std::uint64_t offset() const { return offset_; }
  void seek(std::uint64_t offset) { offset_ = offset; }

  // What stands at offset(), which then moves behind it if it is a record. A batch that names
  // another place than its own is bad.
  Parsed next();

  // The first whole batch at or behind offset(), which then moves behind the batch's record;
  // nothing: there is none, and offset() stays. For what lies behind damage. A job's body may hold
  // bytes that read as a batch, but not as one of this journal: look at `directory`. O(bytes).
  std::optional<BatchHeader> find_batch();

 private:
  std::string_view image_;
  std::uint32_t seed_;
  WallClock clock_;
  const Format* format_;
  std::uint64_t offset_ = kSegmentHeaderBytes;
};

}  // namespace tubed::journal
