// Followers: what a leader has received from the other nodes since its election, and the lease that
// rests on it.
#pragma once

#include <algorithm>
#include <map>
#include <optional>

#include "base/time.h"
#include "cluster/lease.h"
#include "cluster/raft_core.h"
#include "cluster/types.h"

namespace tubed::cluster {

class Followers {
 public:
  explicit Followers(Duration election_timeout) : lease_(election_timeout) {}

  // An answer that has taken longer says too little about the clock of the node.
  static constexpr Duration kLongestReading = std::chrono::milliseconds(500);

  // The last answer of a node.
  struct Answer {
    Time at;
    bool full = false;  // its disk has no room for further jobs
  };

  // Starts again for another term or leader, with nothing received.
  void reset(Time now) {
    lease_.reset();
    answers_.clear();
    added_.clear();
    clocks_.clear();
    reset_ = now;
  }
  // This leader has added the node to the cluster.
  void added(NodeId node, Time now) { added_[node] = now; }
  void answered(NodeId node, Answer answer) { answers_[node] = answer; }

  // A node has answered a frame that was sent at `sent` with its wall clock; this node's is `wall`
  // now.
  void read_clock(NodeId node, Time clock, Time sent, Time now, Time wall) {
    const Duration taken = now - sent;
    if (taken > kLongestReading) return;
    const Duration ahead = clock - (wall - taken / 2);
    clocks_[node] = std::max(ahead, -ahead);
  }
  // Returns how far the wall clock of the node was from this node's, to half of the time that its
  // answer took. Nothing: not known.
  std::optional<Duration> clock_difference(NodeId node) const {
    const auto found = clocks_.find(node);
    return found == clocks_.end() ? std::nullopt : std::optional(found->second);
  }

  Lease& lease() { return lease_; }
  const Lease& lease() const { return lease_; }
  // Returns the last entry that all nodes which have answered after `since` are known to have. The
  // largest index: none has. O(nodes).
  Index acknowledged(Time since, const RaftCore& core) const {
    Index acknowledged = kMostIndex;
    for (const auto& [node, answer] : answers_) {
      if (answer.at > since)
        acknowledged = std::min(acknowledged, core.match(node).value_or(kMostIndex));
    }
    return acknowledged;
  }
  bool has_answered(NodeId node, Time since) const {
    const auto found = answers_.find(node);
    return found != answers_.end() && found->second.at > since;
  }
  // True if the node has answered and its disk has room for further jobs.
  bool has_room(NodeId node) const {
    const auto found = answers_.find(node);
    return found != answers_.end() && !found->second.full;
  }
  // Returns when the node last answered; before its first answer, when it was added or reset() was
  // called.
  Time silent_since(NodeId node) const {
    if (const auto found = answers_.find(node); found != answers_.end()) return found->second.at;
    if (const auto found = added_.find(node); found != added_.end()) return found->second;
    return reset_;
  }

 private:
  Lease lease_;
  std::map<NodeId, Answer> answers_;
  std::map<NodeId, Time> added_;
  std::map<NodeId, Duration> clocks_;
  Time reset_;
};

}  // namespace tubed::cluster
