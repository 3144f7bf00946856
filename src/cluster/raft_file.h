// The files of the Raft log: their names, headers and batches.
//
// Only this header and raft_file.cc know the bytes of a file. A file begins with a header, which is
// on disk before the file gets its name. Batches follow, each at a multiple of 8, and then zeros up
// to the length in the header. docs/internals/raft-log-format.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/types.h"

namespace tubed::cluster {

inline constexpr std::uint64_t kRaftFileHeaderBytes = 64;
inline constexpr std::uint64_t kRaftBatchHeaderBytes = 64;

// Returns a name such as "raft.0000000001"; numbers begin at 1.
std::string raft_file_name(std::uint64_t number);
// Returns nothing if it is not the name of a file of the log.
std::optional<std::uint64_t> raft_file_number(std::string_view name);
// True for the name of an incomplete file, as journal/storage.h leaves it after a crash.
bool is_unfinished_raft_file(std::string_view name);

struct RaftFileHeader {
  std::uint64_t cluster = 0;  // the cluster's identity
  std::uint64_t number = 0;   // as in the file's name
  std::uint64_t bytes = 0;    // length of the file at its creation
};

std::string encode_header(const RaftFileHeader& header);
// The error follows the file's name in a message: not a file of a Raft log, another version,
// damaged, or another number.
Result<RaftFileHeader> decode_header(std::string_view image, std::uint64_t number);

struct RaftBatchHeader {
  std::uint64_t offset = 0;  // of the batch in its file
  std::uint64_t number = 0;  // increases by 1 from batch to batch, across files
  Index first = 0;           // replaces earlier entries from this index
  std::uint64_t cluster = 0;
  std::uint64_t bytes = 0;    // of the records after the header
  std::uint32_t entries = 0;  // number of records; their indexes begin at `first`
  bool reset = false;         // all earlier entries are void
};

// Returns the size of an entry on disk, including header and padding.
std::uint64_t record_bytes(const Entry& entry);

// A batch in memory, before it is written. It shares the data of the entries until it is cleared.
class RaftBatch {
 public:
  void add(Index index, const Entry& entry);
  // Returns the size including the header.
  std::uint64_t bytes() const { return kRaftBatchHeaderBytes + record_bytes_; }
  std::uint32_t entries() const { return entries_; }
  // Completes the batch for the file with the number `file`. Sets `bytes` and `entries` of the
  // header.
  void finish(RaftBatchHeader header, std::uint64_t file);
  // Returns the bytes to write, in order; valid until the batch is cleared. Precondition: finished.
  std::vector<std::string_view> pieces() const;
  void clear();

 private:
  // The data of one large entry, or bytes of small_ if `data` is empty.
  struct Piece {
    Bytes data;
    std::size_t at = 0;
    std::size_t bytes = 0;
  };
  void add_small(std::string_view bytes);

  std::string header_;
  std::string small_;  // headers, padding and the data of small entries
  std::vector<Piece> pieces_;
  std::uint64_t record_bytes_ = 0;
  std::uint32_t entries_ = 0;
};

struct ParsedBatch {
  enum class Kind : std::uint8_t {
    end,    // zeros up to the end of the file, or no bytes
    whole,  // a batch
    torn,   // possible after a crash: the checksum of the header or the records does not match
    bad,    // impossible after a crash
  };
  Kind kind = Kind::end;
  RaftBatchHeader header;      // whole; torn: if header_whole
  bool header_whole = false;   // the header's checksum matches
  std::vector<Entry> entries;  // whole
  std::string reason;          // torn, bad
  std::uint64_t end_offset() const { return header.offset + kRaftBatchHeaderBytes + header.bytes; }
};

// Decodes the bytes at `offset` of the file with this number and cluster. `image` is the whole
// file.
ParsedBatch parse_batch(std::string_view image, std::uint64_t offset, std::uint64_t file,
                        std::uint64_t cluster);
// Finds the first batch header at or after `offset`, whether or not its records are complete. For
// bytes that do not continue the log. O(bytes).
std::optional<RaftBatchHeader> find_batch(std::string_view image, std::uint64_t offset,
                                          std::uint64_t file, std::uint64_t cluster);

}  // namespace tubed::cluster
