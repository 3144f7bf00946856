// Frames of a fetch: the state of one node on its way to another. They have the envelope of
// message.h, and types from kFirstTransferType on. docs/cluster-protocol.md has every byte.
//
// After the Welcome of a connection with purpose `fetch`:
//  1. The source sends the files of its journal: for each a TransferFile, and its bytes in blocks.
//     A TransferRemoval takes the file back that was sent last. A TransferEnd follows the last
//     file.
//  2. The receiver reads the journal and sends the position that it has (TransferPosition).
//     Meanwhile it sends a TransferAlive from time to time.
//  3. The source sends the configuration in force at the position (TransferLog), and the entries of
//     its raft log up to the position (TransferEntries).
//  4. When everything is on its disk, the receiver sends a TransferDone.
// Either side may send a TransferFailure instead of its next frame, and close the connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cluster/types.h"
#include "engine/fact.h"

namespace tubed::cluster {

inline constexpr std::uint8_t kFirstTransferType = 32;
// A block of a file is at most this long, and so are the entries of a frame, but for a single
// entry.
inline constexpr std::size_t kMostBlockBytes = 256U << 10;
inline constexpr std::size_t kMostPieceBytes = 1U << 20;

struct TransferFile {
  std::uint64_t bytes = 0;
  std::string name;
};
struct TransferBlock {
  std::string_view bytes;  // points into the frame
};
struct TransferRemoval {
  std::string name;
};
struct TransferEnd {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};
struct TransferAlive {};
struct TransferPosition {
  Applied position;
};
struct TransferLog {
  Index first = 0;  // of the entries that follow; position + 1: none do
  Index configuration_index = 0;
  std::string configuration;
};
struct TransferEntries {
  Index first = 0;
  std::vector<Entry> entries;
};
struct TransferDone {};
struct TransferFailure {
  std::string reason;  // one line
};

using TransferFrame =
    std::variant<TransferFile, TransferBlock, TransferRemoval, TransferEnd, TransferAlive,
                 TransferPosition, TransferLog, TransferEntries, TransferDone, TransferFailure>;

// O(bytes).
std::string encode(const TransferFrame& frame);
// Nothing: the frame is damaged, of another type or version. `frame`: whole, and valid as long as a
// TransferBlock is used.
std::optional<TransferFrame> decode_transfer(std::string_view frame);

}  // namespace tubed::cluster
