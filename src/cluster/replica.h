// Replica: keeps the queue and the journal of a node in step with the cluster.
//
// It applies entries in order, as soon as they are committed and on this node's own disk. The facts
// go to the journal, followed by the position (`Applied`) in the same batch. On a node that does
// not lead, they also go to the engine; a leader's engine has emitted them and is ahead.
//
// Gaining leadership:
//  1. The node leads in a new term. The replica submits the entry that begins the term.
//  2. Earlier entries are applied as before. When the entry of step 1 is applied, the engine has
//     everything that was ever acknowledged.
//  3. The time of the cluster continues from this entry. Jobs held by clients of the former leader
//     are held over: their reservations end with their TTR, or after hold_grace. New reservations
//     are recorded. The host serves clients, whose facts go to log().
//
// Losing leadership: the engine may be ahead of what the cluster will commit. The replica applies
// nothing further. The host closes all clients without sending gated replies, and starts the node
// again from its disk.
//
// The raft log is cut up to the position that the journal has on disk.
//
// A serving leader raises the level in use (levels.h) when it is connected to all members and all
// know a higher level: it submits an entry without facts that has the new level. A node stores the
// level before it applies that entry, and a leader gives its entries the level in use. So no node
// applies what a higher level allows before it knows that level, and a new leader, which has
// applied all earlier entries before it serves, continues with at least the level of its
// predecessor.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/cluster_clock.h"
#include "cluster/node.h"
#include "cluster/replicated_log.h"
#include "engine/engine.h"
#include "journal/journal.h"

namespace tubed::cluster {

// The program that runs the replica.
class ReplicaHost {
 public:
  // Returns the wall clock, in nanoseconds since 1970.
  virtual Time wall() const = 0;
  // Reads the monotonic clock.
  virtual Time clock() const = 0;
  // The engine is complete: clients may be served, with their facts going to Replica::log().
  virtual void begin_serving() = 0;
  // Leadership was lost. Gated replies must not be sent, and the node must be started again.
  virtual void start_again() = 0;
  // The level in use has risen. It is already stored.
  virtual void level_risen(Level /*from*/, Level /*to*/) {}
  // The replica differs from the cluster or cannot continue. One line.
  virtual void replica_failed(const std::string& reason) = 0;

 protected:
  ~ReplicaHost() = default;
};

class Replica {
 public:
  struct Options {
    Duration hold_grace = std::chrono::seconds(10);
    std::uint32_t entries_per_call = 64;  // limit of one call of advance()
  };

  // Continues at `base`, the position of the journal and the engine. All arguments outlive the
  // replica.
  Replica(ReplicaHost& host, Node& node, journal::Journal& journal, engine::Engine& engine,
          const Applied& base, const Options& options);

  // Applies committed entries and reacts to changes of leadership. Called after
  // NodeHost::node_changed() and after each flush of the journal. Returns true if more can be
  // applied. O(facts applied).
  bool advance();

  // True from begin_serving() until leadership is lost.
  bool serving() const { return serving_; }
  // Precondition: serving().
  ReplicatedLog& log() { return *log_; }
  // The time of the cluster on a serving node.
  const ClusterClock& time() const { return node_.time(); }

  // Returns the position of the newest applied entry.
  const Applied& applied() const { return applied_; }
  // Returns the time of that entry, which has passed on every node. 1970: not known since the
  // start.
  Time applied_time() const { return applied_time_; }
  // Takes effect at the next promotion.
  void set_hold_grace(Duration grace) { options_.hold_grace = grace; }
  // True if the engine may describe the job to the journal, because it is not ahead of the journal
  // for this job.
  bool is_settled(JobId id);

 private:
  class Feed;

  void notice_leadership();
  bool begin_term();
  bool submit(EntryWriter& writer, Level level);
  Time newest_time() const;
  bool is_held_back() const;
  bool apply(Index index);
  bool take_level(Level level);
  std::string unreadable(Index index, std::string_view entry) const;
  void serve();
  void raise_level();
  void cut();
  void fail(const std::string& reason);

  ReplicaHost& host_;
  Node& node_;
  journal::Journal& journal_;
  engine::Engine& engine_;
  Options options_;
  Applied applied_;
  Time applied_time_;
  NullLog nothing_;                     // discards the reservations of a queue that only replays
  std::unique_ptr<ReplicatedLog> log_;  // null: this node has never led
  Term leading_ = 0;                    // the noticed term in which this node leads
  Index begins_ = 0;                    // the entry that begins that term
  Index raises_ = 0;                    // the entry of that term that raises the level; 0: none
  bool serving_ = false;
  bool ended_ = false;  // failed, or must be started again
  // Positions of the log of facts that the journal has not synced, and their entries.
  struct Position {
    Lsn end = 0;
    Index index = 0;
  };
  std::deque<Position> unsynced_;
};

}  // namespace tubed::cluster
