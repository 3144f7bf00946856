// Messages between nodes, as bytes. docs/internals/cluster-protocol.md describes every byte.
//
// A frame: u32 length of what follows, u32 CRC32C of the rest, and the rest. Little-endian. The
// transport keeps the order of the frames between two nodes, and may lose the last of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cluster/types.h"

namespace tubed::cluster {

enum class MessageType : std::uint8_t {
  append = 1,
  append_result,
  vote,
  vote_result,
  fetch,  // the receiver lacks entries that were cut, and must fetch the state
  timeout_now,
};

// Members that a type does not use are 0.
struct Message {
  std::uint64_t cluster = 0;
  NodeId from = 0;
  NodeId to = 0;
  Time sent;  // by the sender's monotonic clock
  Time echo;  // send time of the newest frame of this term's leader, by its clock (append_result)
  Time time;  // of the cluster (append); the sender's wall clock (append_result, kLevelOfClocks)

  MessageType type = MessageType::append;
  Term term = 0;
  Index index = 0;     // append: before the entries; append_result: the last stored, or for a
                       // rejection the last that may be the leader's too; vote: the last
  Term log_term = 0;   // of the entry at `index` (append, vote, timeout_now; a rejecting
                       // append_result: 0 if it is not on disk)
  Index commit = 0;    // append
  Index rejected = 0;  // append_result
  bool granted = false;
  bool pre_vote = false;
  bool disrupt_leader = false;
  bool full = false;           // append_result: the sender's disk has no room for further jobs
  std::vector<Entry> entries;  // append
};

// O(bytes).
std::string encode(const Message& message);

inline constexpr std::size_t kFrameHeaderBytes = 8;
inline constexpr std::size_t kMostFrameBytes = 64U << 20;

// Returns the length of the frame that begins here, including its header. Nothing: more bytes are
// needed to know it. 0: no frame begins like this.
std::optional<std::size_t> frame_bytes(std::string_view bytes);
// Returns nothing if the frame is damaged or of another version. Bytes after its last member are
// those of a later version, and ignored. `frame` is complete.
std::optional<Message> decode(std::string_view frame);

// The largest term and index that a node sends. No cluster reaches it, and the sum of two positions
// does not overflow.
inline constexpr std::uint64_t kMostPosition = std::uint64_t{1} << 62;
// Returns why no node sends this message, for the log; empty: a node may send it. The core relies
// on it. O(entries).
std::string_view fault_of(const Message& message);

inline constexpr std::uint8_t kFrameVersion = 1;

// Returns the version of a complete frame that is intact, and of a later version than this program
// knows. O(1) for the known version.
std::optional<std::uint8_t> later_version(std::string_view frame);
// Returns the reason for closing a connection on which such a frame has arrived, for the log.
std::string later_version_text(std::uint8_t version);

}  // namespace tubed::cluster
