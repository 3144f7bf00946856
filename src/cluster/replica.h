// Replica: keeps the queue and the journal of a node in step with the cluster.
//
// It applies entries in order, as soon as they are committed and on this node's own disk: the facts
// go to the journal, followed by the position (`Applied`) in the same batch, and on a node that
// does not lead to the engine, too. The engine of a leader is ahead: it has emitted these facts.
//
// Gaining leadership:
//  1. The node leads in a new term. The replica submits the entry that begins the term.
//  2. Earlier entries are applied as before. When the entry of step 1 is applied, the engine has
//     everything that was ever acknowledged.
//  3. The time of the cluster goes on from here. Jobs that clients of the former leader hold are
//     held over: their reservations end with their TTR, or after hold_grace. Reservations are
//     recorded from now on. The host serves clients, whose facts go to log().
//
// Losing it: the engine may be ahead of what the cluster will have. The replica applies nothing any
// more, and the host closes all clients without sending what is gated, and starts the node again
// from its disk.
//
// The raft log is cut up to what the journal has on the disk.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "cluster/cluster_clock.h"
#include "cluster/node.h"
#include "cluster/replicated_log.h"
#include "engine/engine.h"
#include "journal/journal.h"

namespace tubed::cluster {

// The program that runs the replica.
class ReplicaHost {
 public:
  // The wall clock, in nanoseconds since 1970.
  virtual Time wall() const = 0;
  // The monotonic clock, read now.
  virtual Time clock() const = 0;
  // The engine has everything: clients may be served, with their facts going to Replica::log().
  virtual void begin_serving() = 0;
  // Leadership was lost. Nothing that is gated may be sent, and the node is to be started again.
  virtual void start_again() = 0;
  // The replica differs from the cluster, or cannot go on. One line.
  virtual void replica_failed(const std::string& reason) = 0;

 protected:
  ~ReplicaHost() = default;
};

class Replica {
 public:
  struct Options {
    Duration hold_grace = std::chrono::seconds(10);
    std::uint32_t entries_per_call = 64;  // that advance() applies at most
  };

  // Continues at `base`, the position of the journal, which the engine has. Everything outlives the
  // replica.
  Replica(ReplicaHost& host, Node& node, journal::Journal& journal, engine::Engine& engine,
          const Applied& base, const Options& options);

  // Applies what can be applied, and notices what has become of the leadership. To be called after
  // NodeHost::node_changed() and after each flush of the journal. True: there is more to apply.
  // O(facts applied).
  bool advance();

  // True from begin_serving() on, until leadership is lost.
  bool serving() const { return serving_; }
  // Precondition: serving().
  ReplicatedLog& log() { return *log_; }
  // The time of the cluster on a node that serves.
  const ClusterClock& time() const { return node_.time(); }

  // The newest entry that is applied.
  const Applied& applied() const { return applied_; }
  // The time of that entry: it has passed for every node. 1970: not known since the start.
  Time applied_time() const { return applied_time_; }
  // From the next promotion on.
  void set_hold_grace(Duration grace) { options_.hold_grace = grace; }
  // Whether the engine may describe the job to the journal: it is not ahead of the journal there.
  bool is_settled(JobId id);

 private:
  class Feed;

  void notice_leadership();
  bool begin_term();
  Time newest_time() const;
  bool is_held_back() const;
  bool apply(Index index);
  void serve();
  void cut();
  void fail(const std::string& reason);

  ReplicaHost& host_;
  Node& node_;
  journal::Journal& journal_;
  engine::Engine& engine_;
  Options options_;
  Applied applied_;
  Time applied_time_;
  NullLog nothing_;  // where reservations would go that a queue that only replays does not have
  std::unique_ptr<ReplicatedLog> log_;  // null: never led
  Term leading_ = 0;                    // the term in which this node leads, as it was noticed
  Index begins_ = 0;                    // the entry that begins that term
  bool serving_ = false;
  bool ended_ = false;  // failed, or to be started again
  // Positions of the log of facts that the journal has not synced, with their entries.
  struct Position {
    Lsn end = 0;
    Index index = 0;
  };
  std::deque<Position> unsynced_;
};

}  // namespace tubed::cluster
