// Segments: the files of a journal, their names, their headers, and how one is read.
//
// Segment files are numbered without a gap. Each begins with a header that was durable before the
// file got its name. Its version may be raised later, in place: a crash then leaves a mixture of
// headers, which is recognized. Any other header that cannot be decoded is damage, and never
// the trace of a crash. docs/journal-format.md
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

// The seed of the checksums of a segment's records: a record of another segment does not match.
std::uint32_t seed_of(std::uint64_t sequence);

struct SegmentHeader {
  std::uint64_t directory = 0;  // the journal's identity
  std::uint64_t sequence = 0;
  std::int64_t created = 0;  // wall clock, nanoseconds since 1970
  std::uint32_t version = kFirstVersion;
  // Not 0: a crash has interrupted the raising of the version to this value. The next raises it at
  // least as high, because records that need it may be there.
  std::uint32_t torn_version = 0;
};

std::string encode_header(const SegmentHeader& header);
// The error follows the file's name in a message: not a segment, another version, damaged, another
// segment's name.
Result<SegmentHeader> decode_header(std::string_view image, std::uint64_t sequence);
// The version, if the header is whole; also a version that this program does not read. If a crash
// has interrupted raise_version(), the higher version.
std::optional<std::uint32_t> version_of(std::string_view image);
// The header is whole, and its version is unknown to this program: this is not damage.
bool has_unknown_version(std::string_view image);

struct SegmentFile {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
};
// The segments of the directory, oldest first. The caller checks for gaps.
Result<std::vector<SegmentFile>> list_segments(FileReader& storage);
// The whole file.
Result<std::string> read_segment(FileReader& storage, std::uint64_t sequence);

// Walks through the records of one segment.
class SegmentReader {
 public:
  // `image` is the whole file, with its header, and outlives the reader. The records are read in
  // the format that the header names; in the last format if the header is damaged.
  SegmentReader(std::string_view image, std::uint64_t sequence, const WallClock& clock);
  // In the given format, which outlives the reader.
  SegmentReader(std::string_view image, std::uint64_t sequence, const WallClock& clock,
                const Format& format)
      : image_(image), seed_(seed_of(sequence)), clock_(clock), format_(&format) {}

  // Where the next record is expected.
  std::uint64_t offset() const { return offset_; }
  void seek(std::uint64_t offset) { offset_ = offset; }

  // Decodes the bytes at offset(), and moves offset() to the end of the record if it is a record. A
  // batch header that names another offset than its own is bad.
  Parsed next();

  // Finds the first whole batch header at or after offset(), and moves offset() to its end. Returns
  // nothing, and leaves offset(), if no header follows. For bytes after damage. A job's body may
  // hold bytes that read as a batch header, but not with the identity of this journal: the caller
  // checks `directory`. O(bytes).
  std::optional<BatchHeader> find_batch();

 private:
  std::string_view image_;
  std::uint32_t seed_;
  WallClock clock_;
  const Format* format_;
  std::uint64_t offset_ = kSegmentHeaderBytes;
};

}  // namespace tubed::journal
