// AppendSender: the appends of a leader to its followers, which its core asks for.
//
// The core assumes that it has sent every entry, and repeats entries when it has heard nothing for
// a heartbeat, although they may take longer. The sender therefore selects the entries that a
// follower has not been sent in the last election timeout, and as many as may be under way.
//
// From kPartsLevel on, appends go through a queue for each follower (append_queue.h), which cuts
// long ones into parts and bounds the bytes under way. Nothing overtakes entries but the heartbeat
// that the sender makes: an append without entries at an entry that the follower has acknowledged,
// which the follower therefore accepts. The core's own heartbeat follows all entries that the core
// has sent, also those that wait: the follower would reject it, and everything would be sent again.
//
// If the follower rejects entries that it should have, or returns no time for an election timeout,
// everything that waits is dropped, and the core sends it again.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/time.h"
#include "cluster/append_queue.h"
#include "cluster/message.h"
#include "cluster/node_host.h"
#include "cluster/raft_core.h"
#include "cluster/raft_log.h"
#include "cluster/types.h"

namespace tubed::cluster {

class AppendSender {
 public:
  // All of them outlive this object.
  AppendSender(const NodeOptions& options, NodeHost& host, const RaftLog& log, const RaftCore& core)
      : options_(options), host_(host), log_(log), core_(core) {}

  // Starts again for another term or leader, with nothing sent.
  void reset();
  // Sends an append of the core, with up to `entries` entries after append.index; in parts if
  // `in_parts` is true. O(entries, bytes).
  void send(Message append, unsigned entries, bool in_parts);
  // The follower has returned the time at which a frame was sent.
  void acknowledged(NodeId follower, Time stamp);
  // The follower lacks the entry before those that were sent.
  void rejected(const Message& rejection);

  // True if appends to this follower wait: a message that is sent now overtakes them.
  bool has_waiting(NodeId follower) const;
  // Returns the bytes per second that the link to a follower carries, by its answers; 0: unknown.
  double rate(NodeId follower) const;
  // Returns the lowest known rate of a link to a follower; 0: none is known. O(followers).
  double lowest_rate() const;
  // True if the quickest majority of `voters`, which include `self`, needs more than half an
  // election timeout for the entries that it lacks and `waiting` further bytes. O(voters).
  bool is_congested(const std::vector<NodeId>& voters, NodeId self, Index committed,
                    std::uint64_t waiting) const;

 private:
  // The newest entry that was sent to a follower, and when.
  struct Sent {
    Index last = 0;
    Time at = Time::min();
  };

  AppendQueue& queue_of(NodeId follower);
  void drop_if_stuck(NodeId follower);
  void take_entries(Message& append, Index last);
  void send_in_parts(Message append);
  void send_queued(NodeId follower);

  const NodeOptions& options_;
  NodeHost& host_;
  const RaftLog& log_;
  const RaftCore& core_;
  std::map<NodeId, Sent> sent_;
  std::map<NodeId, AppendQueue> queues_;
};

}  // namespace tubed::cluster
