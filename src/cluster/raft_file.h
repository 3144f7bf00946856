// The files of the Raft log: their names, their headers and the batches in them.
//
// This header and raft_file.cc are the only place that knows the bytes of a file. A file begins
// with a header that is on the disk before the file gets its name. Batches follow, each at a
// multiple of 8, and then zeros up to the length that the header names. docs/raft-log-format.md
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

// "raft.0000000001"; numbers begin at 1.
std::string raft_file_name(std::uint64_t number);
// Nothing: not the name of a file of the log.
std::optional<std::uint64_t> raft_file_number(std::string_view name);
// A file that was being made, as journal/storage.h leaves it after a crash.
bool is_unfinished_raft_file(std::string_view name);

struct RaftFileHeader {
  std::uint64_t cluster = 0;  // the cluster's identity
  std::uint64_t number = 0;   // as in the file's name
  std::uint64_t bytes = 0;    // the length of the file when it was made
};

std::string encode_header(const RaftFileHeader& header);
// The error follows the file's name in a message: not a file of a Raft log, another version,
// damaged, another number.
Result<RaftFileHeader> decode_header(std::string_view image, std::uint64_t number);

struct RaftBatchHeader {
  std::uint64_t offset = 0;  // of the batch in its file
  std::uint64_t number = 0;  // ascends by 1 from batch to batch, over all files
  Index first = 0;           // entries from this index on that are in earlier batches are void
  std::uint64_t cluster = 0;
  std::uint64_t bytes = 0;    // of the records that follow the header
  std::uint32_t entries = 0;  // the number of records; they have the indexes from `first` on
  bool reset = false;         // every earlier entry is void
};

// The size of an entry on disk, with its header and padding.
std::uint64_t record_bytes(const Entry& entry);

// A batch in memory, to be written. It shares the data of the entries until it is cleared.
class RaftBatch {
 public:
  void add(Index index, const Entry& entry);
  // With the header.
  std::uint64_t bytes() const { return kRaftBatchHeaderBytes + record_bytes_; }
  std::uint32_t entries() const { return entries_; }
  // Completes the batch. `bytes` and `entries` of the header are set here. `file` is the number of
  // the file to which it will be written.
  void finish(RaftBatchHeader header, std::uint64_t file);
  // In the order in which they are written; valid until the batch is cleared. Precondition:
  // finished.
  std::vector<std::string_view> pieces() const;
  void clear();

 private:
  // Data of one large entry, or, if it has none, bytes of small_.
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
    end,    // zeros up to the end of the file, or nothing
    whole,  // a batch
    torn,   // something that a crash may have left: the checksum of the header or the records is
            // wrong
    bad,    // something that no crash leaves
  };
  Kind kind = Kind::end;
  RaftBatchHeader header;      // whole; torn: if header_whole
  bool header_whole = false;   // the header's checksum is right
  std::vector<Entry> entries;  // whole
  std::string reason;          // torn, bad
  std::uint64_t end_offset() const { return header.offset + kRaftBatchHeaderBytes + header.bytes; }
};

// Decodes what is at `offset` of a file of this number and this cluster. `image` is the whole file.
ParsedBatch parse_batch(std::string_view image, std::uint64_t offset, std::uint64_t file,
                        std::uint64_t cluster);
// Finds the first header of a batch at or after `offset`, whether its records are whole or not. For
// bytes that do not continue the log. O(bytes).
std::optional<RaftBatchHeader> find_batch(std::string_view image, std::uint64_t offset,
                                          std::uint64_t file, std::uint64_t cluster);

}  // namespace tubed::cluster
