// LeaderFrames: what a node has received from leaders: the time of the newest frame of each, which
// the node returns in its answers, and the parts of an append that is not complete.
#pragma once

#include <map>
#include <optional>

#include "base/time.h"
#include "cluster/message.h"
#include "cluster/part.h"
#include "cluster/types.h"

namespace tubed::cluster {

class LeaderFrames {
 public:
  // The core has accepted a frame of this leader and term, sent at `sent` by the leader's clock.
  void heard(NodeId leader, Term term, Time sent);
  // Returns the time of the leader's newest frame in this term; Time(): none arrived.
  Time newest(NodeId leader, Term term) const;
  // Returns the append if this is its last part. O(bytes), amortized.
  std::optional<Message> take(const Part& part);

 private:
  struct Heard {
    Term term = 0;
    Time sent;
  };

  std::map<NodeId, Heard> heard_;
  PartAssembly assembly_;
};

}  // namespace tubed::cluster
