// Frames of a fetch, which copies the state of one node to another. They have the envelope of
// message.h, and types starting at kFirstTransferType. docs/internals/cluster-protocol.md describes
// every byte.
//
// After the Welcome of a connection with purpose `fetch`:
//  1. The source sends the files of its journal: for each a TransferFile, then its bytes in blocks.
//     A TransferRemoval takes back the file sent last. A TransferEnd follows the last file.
//  2. The receiver reads the journal, sending a TransferAlive from time to time, and then sends the
//     journal's position (TransferPosition).
//  3. The source sends the configuration in force at the position (TransferLog), and the entries of
//     its raft log up to the position (TransferEntries).
//  4. When everything is on its disk, the receiver sends a TransferDone.
// Either side may instead send a TransferFailure and close the connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cluster/levels.h"
#include "cluster/types.h"
#include "facts/fact.h"

namespace tubed::cluster {

inline constexpr std::uint8_t kFirstTransferType = 32;
// Limits on a block of a file, and on the entries of a frame unless it has a single entry.
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
  Index first = 0;  // of the following entries; position + 1: no entries follow
  Index configuration_index = 0;
  std::string configuration;
  Level level = kFirstLevel;  // in use in the cluster
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
// Returns nothing if the frame is damaged or of another type or version. `frame` is complete, and
// must remain valid while a TransferBlock is used.
std::optional<TransferFrame> decode_transfer(std::string_view frame);

}  // namespace tubed::cluster
