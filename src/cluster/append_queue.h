// AppendQueue: the appends with entries that a leader has for a follower, in order, and the bytes
// of them that are under way.
//
// A frame that is longer than a part is cut into parts (part.h). A frame from next() is under way
// until the follower has returned the time at which it was sent, or a later time. Two frames to a
// follower have different times, so a returned time says which frames have arrived.
//
// The rate of the link follows from the answers: when a frame is acknowledged after a time, all
// bytes that were under way with it have arrived in that time. At most the bytes that the follower
// takes in a quarter of an election timeout are under way, so that they, and signs of life after
// them, arrive within half of one; but at least one part. Parts are short enough for a twentieth,
// within limits. Bytes that are few say nothing about the rate: it is then unknown, and so is that
// of a link which has never been waited for.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/time.h"
#include "cluster/message.h"
#include "cluster/part.h"

namespace tubed::cluster {

class AppendQueue {
 public:
  struct Options {
    Duration election_timeout{};
    std::uint32_t part_bytes = 128 << 10;  // the longest part; the shortest is an eighth of it
  };

  explicit AppendQueue(const Options& options) : options_(options) {}

  // Adds an append with entries. O(1) per entry.
  void add(Message append);
  // Returns the next frame, which is sent now, if it may be under way together with the others.
  // O(bytes), amortized.
  std::optional<std::string> next(Time now);
  // Returns the time for another frame to this follower, sent now: it is later than the times of
  // all earlier frames.
  Time stamp(Time now);
  // The follower has returned this time.
  void acknowledge(Time stamp, Time now);
  // Drops everything. The rate stays.
  void drop();

  // True if entries wait, or parts of an append. A frame that is sent now overtakes them.
  bool waits() const { return !waiting_.empty() || offset_ < encoded_.size(); }
  // True if bytes are under way and nothing was acknowledged for an election timeout: they may be
  // lost.
  bool is_stuck(Time now) const {
    return !under_way_.empty() && now > progress_ + options_.election_timeout;
  }
  // Returns the bytes per second that the link carries; 0: unknown.
  double rate() const { return rate_; }
  std::uint64_t bytes_under_way() const { return bytes_; }

  // The appends acknowledged since the last call that took longer than half an election timeout,
  // from their first byte to their acknowledgement, and the longest such time.
  struct Slow {
    std::uint64_t count = 0;
    Duration longest{};
  };
  Slow take_slow();

 private:
  struct Sent {
    Time stamp;
    Time begun;               // when the first part of its append was sent
    std::uint64_t bytes = 0;  // of this frame
    std::uint64_t total = 0;  // under way, with this frame
    bool ends = false;        // its append
    bool filled = false;      // the next frame had to wait
  };

  std::uint64_t part_bytes() const;
  std::uint64_t window() const;
  void begin_append(Time now);
  void learn(const Sent& newest, Time now);

  Options options_;
  std::deque<Message> waiting_;
  std::string encoded_;     // the append that is being cut
  std::size_t offset_ = 0;  // of its next part
  Part part_;               // the fields of its parts
  Time begun_;              // when its first part was sent
  std::deque<Sent> under_way_;
  std::uint64_t bytes_ = 0;  // of under_way_
  Time stamp_ = Time::min();
  Time progress_;  // when something was acknowledged, or first sent
  double rate_ = 0;
  Slow slow_;
};

}  // namespace tubed::cluster
