// Followers: what a leader has sent to the other nodes, and received from them, since its election.
#pragma once

#include <map>

#include "base/time.h"
#include "cluster/types.h"

namespace tubed::cluster {

class Followers {
 public:
  // The newest entry that was sent to a node, and when.
  struct Sent {
    Index last = 0;
    Time at = Time::min();
  };
  // The last answer of a node.
  struct Answer {
    Time at;
    bool full = false;  // its disk has no room for further jobs
  };

  // Starts again for another term or leader, with nothing sent or received.
  void reset(Time now) {
    sent_.clear();
    answers_.clear();
    added_.clear();
    reset_ = now;
  }
  // This leader has added the node to the cluster.
  void added(NodeId node, Time now) { added_[node] = now; }
  void answered(NodeId node, Answer answer) { answers_[node] = answer; }

  // Creates an empty entry for a node to which nothing was sent.
  Sent& sent(NodeId node) { return sent_[node]; }
  const std::map<NodeId, Answer>& answers() const { return answers_; }
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
  std::map<NodeId, Sent> sent_;
  std::map<NodeId, Answer> answers_;
  std::map<NodeId, Time> added_;
  Time reset_;
};

}  // namespace tubed::cluster
