// Segments: the files of a journal, their names and headers, and how to read them.
//
// Segment files are numbered without a gap. Each begins with a header, which was durable before the
// file got its name. Its version may be raised later, in place; a crash then leaves a mixture of
// headers, which is recognized. Any other header that cannot be decoded is damage, never the result
// of a crash. docs/internals/journal-format.md
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

// Returns a name such as "journal.0000000001"; numbers begin at 1.
std::string segment_name(std::uint64_t sequence);
// Returns nothing if it is not the name of a segment.
std::optional<std::uint64_t> sequence_of(std::string_view name);

// Returns the seed of the checksums in a segment: a record of another segment does not match.
std::uint32_t seed_of(std::uint64_t sequence);

struct SegmentHeader {
  std::uint64_t directory = 0;  // the journal's identity
  std::uint64_t sequence = 0;
  std::int64_t created = 0;  // wall clock, nanoseconds since 1970
  std::uint32_t version = kFirstVersion;
  // Not 0: a crash has interrupted raising the version to this value. It must next be raised at
  // least that far, because records that need it may exist.
  std::uint32_t torn_version = 0;
};

std::string encode_header(const SegmentHeader& header);
// The error follows the file's name in a message: not a segment, an unknown version, damaged, or
// the header of another segment.
Result<SegmentHeader> decode_header(std::string_view image, std::uint64_t sequence);
// Returns the version if the header is whole, even a version that this program cannot read. If a
// crash has interrupted raise_version(), returns the higher version.
std::optional<std::uint32_t> version_of(std::string_view image);
// True if the header is whole and its version unknown to this program: this is not damage.
bool has_unknown_version(std::string_view image);

struct SegmentFile {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
};
// Returns the segments of the directory, oldest first. The caller checks for gaps.
Result<std::vector<SegmentFile>> list_segments(FileReader& storage);
// Reads the whole file.
Result<std::string> read_segment(FileReader& storage, std::uint64_t sequence);

// Walks through the records of one segment.
class SegmentReader {
 public:
  // `image` is the whole file, including its header, and outlives the reader. Records are read in
  // the format that the header names, or in the last format if the header is damaged.
  SegmentReader(std::string_view image, std::uint64_t sequence, const WallClock& clock);
  // Reads in the given format, which outlives the reader.
  SegmentReader(std::string_view image, std::uint64_t sequence, const WallClock& clock,
                const Format& format)
      : image_(image), seed_(seed_of(sequence)), clock_(clock), format_(&format) {}

  // Where the next record is expected.
  std::uint64_t offset() const { return offset_; }
  void seek(std::uint64_t offset) { offset_ = offset; }

  // Decodes the bytes at offset() and moves offset() to the end of the record, if it is a record. A
  // batch header that names an offset other than its own is bad.
  Parsed next();

  // Finds the first whole batch header at or after offset(), and moves offset() to its end. If no
  // header follows, returns nothing and does not move. For bytes after damage. A job's body may
  // contain bytes that read as a batch header, but not with the identity of this journal: the
  // caller checks `directory`. O(bytes).
  std::optional<BatchHeader> find_batch();

 private:
  std::string_view image_;
  std::uint32_t seed_;
  WallClock clock_;
  const Format* format_;
  std::uint64_t offset_ = kSegmentHeaderBytes;
};

}  // namespace tubed::journal
