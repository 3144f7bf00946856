// StateSource: sends the state of this node to another node that fetches it (cluster/transfer.h).
//
// A thread copies the journal (journal/backup.h), which the node goes on writing, and writes it to
// the connection. The thread uses nothing of the node: when it needs entries, it wakes the loop,
// whose thread encodes a piece of them. Meanwhile the raft log of the node is pinned at its oldest
// entry, so that it still has the entries before the position that the copy goes to.
//
// One source at a time: a node has one pin. All functions are for the loop's thread, and none of
// them blocks but the destructor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cluster/node.h"
#include "loop/loop.h"
#include "os/socket.h"

namespace tubed::node {

struct StateSent {
  std::uint64_t bytes = 0;  // of the journal
  cluster::Index position = 0;
};

struct StateSourceOptions {
  std::string directory;             // the journal's
  std::uint64_t rate = 0;            // bytes a second; 0: no limit
  std::string greeting;              // sent before everything else: the Welcome
  Duration timeout{10'000'000'000};  // of one read or write that makes no progress
};

class StateSource {
 public:
  // The error is one line: the reason why the other node does not have the state.
  using Ended = std::function<void(const Result<StateSent>&)>;

  // `connection`: after the Hello of the other node. `ended` is called once, in the loop, and may
  // destroy the source. `loop` and `node` outlive the source.
  StateSource(loop::Loop& loop, cluster::Node& node, os::Socket connection,
              StateSourceOptions options, Ended ended);
  // Closes the connection, and waits until the thread has ended: for at most one operation of the
  // disk. `ended` is not called.
  ~StateSource();

  // Takes effect at once.
  void set_rate(std::uint64_t rate);
  // Of the journal, sent so far.
  std::uint64_t bytes() const;

 private:
  class Sender;

  std::unique_ptr<Sender> sender_;
};

}  // namespace tubed::node
