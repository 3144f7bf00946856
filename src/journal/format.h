// Format: what one version of the journal's format says about records.
//
// A segment's header names its version, and SegmentReader reads the records with that version's
// Format. A new version is a new Format in the table of format.cc; the functions of older formats
// stay as they are, since segments of an older version stay until compaction has removed them.
//
// A segment is created with version 1. Each version has the records of those before it and more of
// its own, so a segment gets a higher version when the first record that needs it is written to it
// (Committer). A server that uses nothing new writes a journal that an older tubed reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "journal/record.h"

namespace tubed::journal {

struct Format {
  std::uint32_t version = 0;
  std::size_t batch_header_bytes = 0;  // of a batch's record, with its header
  // As parse_record().
  Parsed (*parse)(std::string_view bytes, std::uint32_t seed, const WallClock& clock) = nullptr;
  // False: the `batch_header_bytes` bytes are not a batch's record. Cheap, for a search at every
  // place.
  bool (*may_be_batch_header)(std::string_view bytes) = nullptr;
};

// The versions that are written.
inline constexpr std::uint32_t kFirstVersion = 1;
inline constexpr std::uint32_t kLastVersion = 3;

// Null: this program does not read that version.
const Format* find_format(std::uint32_t version);
// Of kLastVersion.
const Format& last_format();

}  // namespace tubed::journal
