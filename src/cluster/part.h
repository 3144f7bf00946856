// Parts of an append: a long frame to a follower, cut so that each part arrives soon and is a sign
// of life of the leader. docs/internals/cluster-protocol.md describes every byte.
//
// The parts of a frame are sent in order, and no other entries are sent between them. A follower
// appends them to each other until the frame is whole, and then receives it as if it had arrived
// alone, sent when its last part was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "cluster/levels.h"
#include "cluster/types.h"

namespace tubed::cluster {

// The level that allows parts.
inline constexpr Level kPartsLevel = 3;
// The type of their frames.
inline constexpr std::uint8_t kPartType = 7;

struct Part {
  std::uint64_t cluster = 0;
  NodeId from = 0;
  NodeId to = 0;
  Time sent;  // by the sender's monotonic clock
  Term term = 0;
  std::uint64_t frame = 0;   // the number of the cut frame, which its sender uses once in a term
  std::uint32_t offset = 0;  // of the bytes in the cut frame
  std::uint32_t total = 0;   // length of the cut frame
  std::string_view bytes;    // after decoding, they point into the frame of the part
};

// O(bytes).
std::string encode(const Part& part);
// True if a complete frame has the type of a part. It may be damaged. O(1).
bool is_part(std::string_view frame);
// Returns nothing if the frame is damaged or no part.
std::optional<Part> decode_part(std::string_view frame);

// The incomplete frame of the leader that a node follows. It holds at most the bytes that have
// arrived, and at most kMostFrameBytes.
class PartAssembly {
 public:
  // Returns the whole frame if this is its last part. Drops a part of an older term, and a part
  // that does not continue the incomplete frame. O(bytes), amortized.
  std::optional<std::string> take(const Part& part);

 private:
  NodeId from_ = 0;
  Term term_ = 0;
  std::uint64_t frame_ = 0;
  std::uint32_t total_ = 0;
  std::string bytes_;
};

}  // namespace tubed::cluster
