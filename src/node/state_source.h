// StateSource: sends the state of this node to another node that fetches it (cluster/transfer.h).
//
// A thread copies the journal (journal/backup.h), which the node continues to write, and writes it
// to the connection. The thread uses nothing of the node: when it needs entries, it wakes the loop,
// whose thread encodes a piece of them. Meanwhile the raft log of the node is pinned at its oldest
// entry, to keep the entries before the position of the copy.
//
// Only one source may exist at a time, because a node has one pin. All functions belong to the
// loop's thread, and only the destructor blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cluster/node.h"
#include "loop/connection.h"
#include "loop/loop.h"

namespace tubed::node {

struct StateSent {
  std::uint64_t bytes = 0;  // of the journal
  cluster::Index position = 0;
};

struct StateSourceOptions {
  std::string directory;             // of the journal
  std::uint64_t rate = 0;            // bytes per second; 0: no limit
  std::string greeting;              // the Welcome, sent first
  cluster::NodeId receiver = 0;      // the other node
  Duration timeout{10'000'000'000};  // for a read or write without progress
};

// Returns the bytes per second that a source may send: the setting cluster.fetch_rate, or if that
// is 0, half of what a link is known to carry; 0: no limit.
constexpr std::uint64_t source_rate(std::uint64_t setting, double link_rate) {
  if (setting != 0 || link_rate <= 0) return setting;
  return link_rate < 2 ? 1 : static_cast<std::uint64_t>(link_rate / 2);
}

class StateSource {
 public:
  // The error is one line: why the other node does not have the state.
  using Ended = std::function<void(const Result<StateSent>&)>;

  // `connection` is a connection after the Hello of the other node. Calls `ended` once, in the
  // loop; it may destroy the source. `loop` and `node` outlive the source.
  StateSource(loop::Loop& loop, cluster::Node& node, loop::Connection connection,
              StateSourceOptions options, Ended ended);
  // Closes the connection and waits for the thread: for at most one disk operation. Does not call
  // `ended`.
  ~StateSource();

  // Takes effect at once.
  void set_rate(std::uint64_t rate);
  // Returns the bytes of the journal sent so far.
  std::uint64_t bytes() const;

 private:
  class Sender;

  std::unique_ptr<Sender> sender_;
};

}  // namespace tubed::node
