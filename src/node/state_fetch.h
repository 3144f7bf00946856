// StateFetch: gets the state of another node (cluster/transfer.h) into the directory D/fetch, where
// D is the directory of the journal.
//
// If the host of the other node is a name, the loop resolves it first (loop/name_lookup.h). A
// thread then dials the other node, at its addresses in their order until one accepts. It writes
// the files of its journal to D/fetch, reads them as a start does, and then writes the entries
// before their position as a raft log to D/fetch/cluster. All this is durable, and nothing else in
// D changes; install() makes it the state of this node (state_install.h). After any failure,
// D/fetch is removed: a full disk, damage, another cluster, a source that disappears.
//
// All functions belong to the loop's thread, and only the destructor blocks. The node may run
// meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cluster/control.h"
#include "cluster/member.h"
#include "cluster/raft_log_context.h"
#include "cluster/types.h"
#include "facts/fact.h"
#include "loop/loop.h"
#include "loop/name_lookup.h"
#include "node/peer_handshake.h"

namespace tubed::node {

// The state in D/fetch, for install().
struct FetchedState {
  std::uint64_t cluster = 0;  // the cluster's identity
  Applied position;           // of the journal, and of the last entry of the raft log
  cluster::Index configuration_index = 0;
  std::string configuration;                    // in force at the position
  cluster::Level level = cluster::kFirstLevel;  // in use in the cluster
  std::uint64_t bytes = 0;                      // of the journal
};

struct StateFetchOptions {
  std::string directory;             // D, which exists
  cluster::MemberAddress source;     // the node to dial
  cluster::Hello hello;              // purpose: fetch
  PeerSecurity security = {};        // for the source
  cluster::Index at_least = 0;       // refuses a state that ends before this entry: the last here
  cluster::RaftLogOptions raft_log;  // `cluster` is taken from the hello
  Duration timeout{10'000'000'000};  // for a read or write without progress
};

class StateFetch {
 public:
  // The error is one line that names the source.
  using Ended = std::function<void(const Result<FetchedState>&)>;

  // Calls `ended` once, in the loop; it may destroy the fetch. `loop` outlives the fetch.
  StateFetch(loop::Loop& loop, StateFetchOptions options, Ended ended);
  // Closes the connection and waits for the thread: for at most one disk operation, and for no name
  // server. Does not call
  // `ended`. Unless the fetch was complete, D/fetch is removed.
  ~StateFetch();

  // Returns the bytes of the journal received so far.
  std::uint64_t bytes() const;

 private:
  class Receiver;

  std::unique_ptr<loop::NameLookup> lookup_;  // while a name is resolved
  std::unique_ptr<Receiver> receiver_;        // later
};

}  // namespace tubed::node
