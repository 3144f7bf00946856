// Lease: until when a leader may be sure that no other node leads.
//
// A follower that has heard from a leader votes for no other node for an election timeout, and a
// node votes for none in the first election timeout of its life (Node). Each frame carries the time
// at which it was sent, and the answer to it carries that time back: a majority whose answers echo
// times after t, this node included, elects no other leader before t + the election timeout. The
// lease ends after nine tenths of it, so that the rates of two clocks may differ by 10 %.
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
  explicit Lease(Duration election_timeout) : length_(election_timeout / 10 * 9) {}

  // A new term, or another leader: nothing was answered yet.
  void reset() {
    echoes_.clear();
    given_up_ = false;
  }
  // A voter has answered, in this term, a frame that was sent at `sent`.
  void answered(NodeId voter, Time sent) {
    Time& echo = echoes_.try_emplace(voter, Time::min()).first->second;
    echo = std::max(echo, sent);
  }
  // The lease ends now: leadership may pass to another node at any time.
  void give_up() { given_up_ = true; }
  // That is over, and it has not passed.
  void take_back() { given_up_ = false; }
  bool given_up() const { return given_up_; }

  // When the lease ends; Time::min(): the node has none. `voters`: all of them, `self` included.
  // O(n).
  Time end(const std::vector<NodeId>& voters, NodeId self) const {
    if (given_up_ || voters.empty()) return Time::min();
    std::vector<Time> times;
    for (const NodeId voter : voters) {
      const auto echo = echoes_.find(voter);
      times.push_back(voter == self ? kNever : echo == echoes_.end() ? Time::min() : echo->second);
    }
    // The majority's oldest: the others may know of another leader.
    const auto oldest = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, oldest, std::greater());
    if (*oldest == Time::min() || *oldest == kNever) return *oldest;
    return *oldest + length_;
  }

 private:
  Duration length_;
  std::map<NodeId, Time> echoes_;
  bool given_up_ = false;
};

}  // namespace tubed::cluster
