// Records: facts as bytes. Implements docs/internals/journal-format.md, which describes every byte.
//
// A record: u32 CRC32C of everything that follows, seeded with the segment's seed; u32 payload
// length; the payload, whose first byte is the kind; zeros up to a multiple of 8. Little-endian
// throughout. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "facts/fact_log.h"

namespace tubed::journal {

// Converts between the machine's two clocks: times are wall time on disk and monotonic in memory.
struct WallClock {
  Duration offset{};  // wall time since 1970 minus monotonic time

  // Nanoseconds since 1970. Both functions saturate; kNever is the largest number.
  std::int64_t to_wall(Time time) const;
  Time to_monotonic(std::int64_t wall) const;
};

// The header of a commit batch. It precedes facts that were written together, and gives their
// position in the log. The facts of a batch count together or not at all.
struct BatchHeader {
  std::uint64_t directory = 0;  // the journal's identity
  std::uint64_t offset = 0;     // of this record in its segment
  Lsn lsn = 0;                  // of its first fact; without facts, of the next fact
  Lsn durable = 0;              // facts before this position were on disk when it was written
  JobId next_job_id = 0;        // the batch and all before it used only smaller ids
  std::int64_t written = 0;     // wall clock, nanoseconds since 1970
  std::uint32_t facts = 0;      // in the batch
  std::uint64_t jobs = 0;       // number of jobs after its last fact
  bool clean = false;           // an orderly stop: nothing follows

  friend bool operator==(const BatchHeader&, const BatchHeader&) = default;
};

using Record = std::variant<BatchHeader, Fact>;

inline constexpr std::size_t kRecordAlignment = 8;
inline constexpr std::size_t kRecordHeaderBytes = 8;
inline constexpr std::size_t kBatchHeaderBytes = 72;
inline constexpr std::size_t kPlacedBytes = 56;
inline constexpr std::size_t kRemovedBytes = 24;
inline constexpr std::size_t kHeldBytes = 32;
inline constexpr std::size_t kAppliedBytes = 40;
// Return the sizes of whole records, including header and padding.
std::size_t added_bytes(std::size_t tube_bytes, std::size_t body_bytes);
std::size_t record_bytes(const Fact& fact);
// Returns the oldest version of the format that can record this fact.
std::uint32_t version_needed(const Fact& fact);

// Appends one record to `out`. A body of `refer_from` bytes or more is left out, though the length
// and checksum include it: then returns the position in `out` where its bytes belong.
std::optional<std::size_t> append_record(std::string& out, std::uint32_t seed, const Fact& fact,
                                         const WallClock& clock, std::size_t refer_from = SIZE_MAX);
// Fills exactly kBatchHeaderBytes.
void write_batch_header(std::span<char> out, std::uint32_t seed, const BatchHeader& batch);

// The result of decoding the first record of some bytes.
struct Parsed {
  enum class Kind : std::uint8_t {
    record,
    end,  // no bytes, or a header of zeros: nothing was written here
    bad,
  };
  Kind kind = Kind::end;
  std::size_t bytes = 0;         // record: its whole length
  Record record;                 // texts point into the given bytes; a body is a copy
  std::string_view reason = {};  // bad: a literal
};
// Decodes a record of this version of the format or an older one. O(length of the record).
template <std::uint32_t kVersion>
Parsed parse_record(std::string_view bytes, std::uint32_t seed, const WallClock& clock);
// Checks two fields of kBatchHeaderBytes bytes, but not the checksum. False: not a batch header.
bool looks_like_batch_header(std::string_view bytes);

}  // namespace tubed::journal
