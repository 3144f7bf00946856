// NodeHost: the program that runs a node, and NodeOptions: what it decides.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "cluster/levels.h"
#include "cluster/raft_log_context.h"
#include "cluster/types.h"

namespace tubed::cluster {

class NodeHost {
 public:
  // Reads the monotonic clock.
  virtual Time clock() const = 0;
  // Reads the wall clock, in nanoseconds since 1970. Time(): it is not known.
  virtual Time wall() const { return {}; }
  // Sends a frame, or loses it.
  virtual void send(NodeId to, std::string frame) = 0;
  // applicable(), committed(), leads() or the lease may have changed. The host checks them later,
  // never within the call.
  virtual void node_changed() = 0;
  // This node lacks entries that the leader has cut, and must fetch the state. Called again with
  // each heartbeat until it has.
  virtual void fetch_state(NodeId from) = 0;
  // Nothing further is stored or sent. Called once.
  virtual void node_failed(const std::string& reason) = 0;
  // Writing has begun or ceased to wait for space.
  virtual void raft_log_full(bool full, const std::string& reason) = 0;
  // True if the journal has no room for further jobs.
  virtual bool journal_full() const { return false; }
  // Appends to this follower took longer than half an election timeout: how many were acknowledged
  // since the last call, and the longest time.
  virtual void appends_were_slow(NodeId /*follower*/, std::uint64_t /*count*/,
                                 Duration /*longest*/) {}
  // Returns the highest level that this other member knows; 0: it is not connected.
  virtual Level level_of(NodeId /*member*/) const { return 0; }

 protected:
  ~NodeHost() = default;
};

struct NodeOptions {
  Duration election_timeout = std::chrono::milliseconds(300);
  unsigned seed = 1;            // for the random part of the election timeout
  Level level = kFeatureLevel;  // the highest that the program knows
  // How many entries up to the journal's position are kept, and at most how many bytes of them; at
  // least one entry is kept. A node that lags by less needs no state.
  Index kept_entries = 4096;
  std::uint64_t kept_bytes = 64 << 20;
  // The most bytes of entries sent to a node without an answer, and in one append, unless a single
  // entry is larger.
  std::uint64_t in_flight_bytes = 16 << 20;
  // The longest part of an append.
  std::uint32_t part_bytes = 128 << 10;
  // A leader is congested() if more bytes of entries are not stored on its own disk.
  std::uint64_t unstored_bytes = 64 << 20;
  // Older entries are kept for reachable followers, up to log.log_bytes.
  RaftLogOptions log;
};

}  // namespace tubed::cluster
