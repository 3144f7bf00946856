// OwnRemoval: the removal of this node from its cluster: how the next leader is asked for one that
// was requested while this node led, and how this node learns that it was removed.
//
// A leader that is to be removed passes leadership on, and the next leader removes it. A node that
// was removed gets no more entries: it learns of that from a member that does not accept it.
#pragma once

#include <optional>
#include <utility>

#include "base/time.h"
#include "cluster/control.h"

namespace tubed::node {

class OwnRemoval {
 public:
  // A removal of this node was requested while it led. `now` is by the node's clock, here and
  // below.
  void begin(const cluster::Request& request, Time now) {
    request_ = request;
    until_ = now + kTimeout;
  }
  // Returns the request if it is to be sent to the leader now, and waits for answered(); otherwise
  // null.
  const cluster::Request* next(Time now) {
    if (now > until_) request_.reset();
    if (!request_ || is_sent_) return nullptr;
    is_sent_ = true;
    return &*request_;
  }
  void answered(const cluster::Response& response) {
    is_sent_ = false;
    if (response.status == 200) request_.reset();
  }

  // This node is or was a member. Before that, no rejection is a removal: the state was fetched
  // before this node was added, and it has not seen that yet.
  void set_was_member() { was_member_ = true; }
  // A node that does not count this node among the members answered with `welcome`. Returns true if
  // this node was therefore removed: the other node knows later members, or the same as this node,
  // which are without it (this node does not know that they are committed). `known`: the newest
  // configuration that this node knows; `is_member`: whether this node is in it.
  bool follows_from(const cluster::Welcome& welcome, cluster::Index known, bool is_member) const {
    if (!was_member_) return false;
    return welcome.configuration_index > known ||
           (welcome.configuration_index == known && !is_member);
  }
  // Returns true at the first call.
  bool report() { return !std::exchange(reported_, true); }

 private:
  static constexpr Duration kTimeout = std::chrono::seconds(10);

  std::optional<cluster::Request> request_;
  Time until_;
  bool is_sent_ = false;
  bool was_member_ = false;
  bool reported_ = false;
};

}  // namespace tubed::node
