// Rejections of appends: what a follower says in one, and what its leader learns from one.
#pragma once

#include "cluster/message.h"
#include "cluster/raft_core.h"
#include "cluster/raft_log.h"
#include "cluster/types.h"

namespace tubed::cluster {

// Adds to a follower's rejection the term of the last entry that may be the leader's too. The
// entries that were cut, and those after them up to `applicable`, are committed, so every later
// leader has them.
void explain(Message& rejection, const RaftLog& log, Index applicable);

// True if this leader's core would not learn from the rejection what the follower has, and the
// rejection is passed to it as an acknowledgement. A node that has fetched a state rejects appends,
// because libraft's leader continues from the leader's own state. A node whose acknowledgements
// were lost rejects entries that it has cut. If the node and this leader have the same entry with
// the same term, the node also has all entries before it (log matching property).
bool acknowledges(const Message& rejection, const RaftLog& log, const RaftCore& core);

}  // namespace tubed::cluster
