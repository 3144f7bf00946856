// Lease: the time until which a leader can be sure that no other node leads.
//
// A follower that has heard from a leader votes for no other node for an election timeout, and a
// node does not vote in the first election timeout of its life (Node). Each frame carries the time
// at which it was sent, and the answer returns that time. If a majority, including this node, has
// returned times after t, it elects no other leader before t + the election timeout. The lease ends
// after nine tenths of that, so the rates of two clocks may differ by 10 %.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "base/time.h"
#include "cluster/types.h"

namespace tubed::cluster {

class Lease {
 public:
  explicit Lease(Duration election_timeout) : timeout_(election_timeout) {}

  // Starts again for another term or leader, without answers.
  void reset() {
    echoes_.clear();
    given_up_ = false;
  }
  // A voter has answered, in this term, a frame sent at `sent`.
  void answered(NodeId voter, Time sent) {
    Time& echo = echoes_.try_emplace(voter, Time::min()).first->second;
    echo = std::max(echo, sent);
    if (voter == successor_ && sent > transfer_ended_) given_up_ = false;
  }

  // Ends the lease now, because leadership may pass to the successor at any time. If the transfer
  // has no effect, the lease returns when the successor has answered a later frame, because
  // everything sent to it before has then arrived or is lost.
  void give_up(NodeId successor) {
    given_up_ = true;
    successor_ = successor;
    transfer_ended_ = kNever;
  }
  // The transfer of leadership has ended without effect.
  void transfer_ended(Time now) { transfer_ended_ = std::min(transfer_ended_, now); }
  bool given_up() const { return given_up_; }
  // True if the successor does not answer either, so the lease does not return.
  bool is_stranded(Time now) const {
    return given_up_ && transfer_ended_ != kNever && now > transfer_ended_ + 4 * timeout_;
  }

  // Returns when the lease ends; Time::min(): the node has no lease. `voters` includes `self`. Does
  // not allocate. O(n * n).
  Time end(const std::vector<NodeId>& voters, NodeId self) const {
    if (given_up_) return Time::min();
    // The oldest of the majority's times: the other voters may follow another leader.
    Time oldest = Time::min();
    for (const NodeId voter : voters) {
      const Time time = echo_of(voter, self);
      const auto since =
          std::ranges::count_if(voters, [&](NodeId other) { return echo_of(other, self) >= time; });
      if (2 * static_cast<std::size_t>(since) > voters.size()) oldest = std::max(oldest, time);
    }
    return oldest == Time::min() || oldest == kNever ? oldest : oldest + timeout_ / 10 * 9;
  }

 private:
  Time echo_of(NodeId voter, NodeId self) const {
    if (voter == self) return kNever;
    const auto echo = echoes_.find(voter);
    return echo == echoes_.end() ? Time::min() : echo->second;
  }

  Duration timeout_;
  std::map<NodeId, Time> echoes_;
  bool given_up_ = false;
  NodeId successor_ = 0;          // of the last transfer
  Time transfer_ended_ = kNever;  // kNever: under way, or no transfer
};

}  // namespace tubed::cluster
