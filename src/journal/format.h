// Format: how one version of the journal's format encodes records.
//
// The header of a segment names its version, and SegmentReader reads the records with that
// version's Format. A new version is a new Format in the table of format.cc. The functions of older
// formats do not change: segments of an older version remain until compaction has removed them.
//
// A segment is created with version 1. Each version adds records to the previous one. Writing the
// first record that needs a higher version raises the version of its segment (Committer), so a
// server that uses no new features writes a journal that an older tubed can read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "journal/record.h"

namespace tubed::journal {

struct Format {
  std::uint32_t version = 0;
  std::size_t batch_header_bytes = 0;  // size of a batch header, with its record header
  // Decodes a record, as parse_record() does.
  Parsed (*parse)(std::string_view bytes, std::uint32_t seed, const WallClock& clock) = nullptr;
  // Returns false if the `batch_header_bytes` bytes are certainly not a batch header. Cheap, for a
  // search at every offset.
  bool (*may_be_batch_header)(std::string_view bytes) = nullptr;
};

// The versions that can be written.
inline constexpr std::uint32_t kFirstVersion = 1;
inline constexpr std::uint32_t kLastVersion = 3;

// Returns null if this program cannot read the version.
const Format* find_format(std::uint32_t version);
// Returns the format of kLastVersion.
const Format& last_format();

}  // namespace tubed::journal
