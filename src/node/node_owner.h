// NodeOwner: one life of a node, from one start to the next: the journal, the raft log, libraft's
// core, and the replica that keeps queue and journal in step (cluster/replica.h).
//
// A life ends when leadership is lost, because the queue may then be ahead of the cluster, and when
// the state of another node replaces the node's own. The owner destroys the object when it is idle,
// gives the service an empty queue, and creates the next.
//
// In each tick with an event, drive() lets all parts continue.
#pragma once

#include <memory>
#include <string>

#include "cluster/node.h"
#include "cluster/replica.h"
#include "commands/service.h"
#include "config/settings.h"
#include "disk/file_storage.h"
#include "loop/loop.h"
#include "os/log.h"
#include "serving/journal_owner.h"

namespace tubed::node {

// Returns the directory of the raft log and the node's state.
std::string cluster_directory(const Settings& settings);

// The server around a node, as the node sees it. No function may destroy the node.
class NodeOwnerHost {
 public:
  virtual void begin_tick() = 0;
  virtual void send(cluster::NodeId to, std::string frame) = 0;
  // The node lacks the state of that node. Repeated until it has been fetched.
  virtual void fetch_state(cluster::NodeId from) = 0;
  virtual void begin_serving() = 0;
  virtual void leadership_lost() = 0;
  // The level in use has risen.
  virtual void level_risen() = 0;
  // So many appends to this follower took longer than half an election timeout.
  virtual void appends_were_slow(cluster::NodeId follower, std::uint64_t count,
                                 Duration longest) = 0;
  // Returns the highest level that this other member knows; 0: it is not connected.
  virtual cluster::Level level_of(cluster::NodeId member) const = 0;
  // The reason has been logged.
  virtual void node_failed(int exit_code) = 0;

 protected:
  ~NodeOwnerHost() = default;
};

class NodeOwner final : private cluster::NodeHost,
                        private cluster::ReplicaHost,
                        private serving::JournalOwnerHost,
                        private serving::Replication {
 public:
  // Reads the journal and the raft log. The queue of the service is empty, and receives the jobs.
  // Blocks. The error is one line. All referenced arguments outlive the node.
  static Result<std::unique_ptr<NodeOwner>> open(loop::Loop& loop, os::Log& log,
                                                 const Settings& settings,
                                                 commands::Service& service, NodeOwnerHost& host);

  cluster::Node& node() { return *node_; }
  cluster::Replica& replica() { return *replica_; }
  const cluster::Node& node() const { return *node_; }
  const cluster::Replica& replica() const { return *replica_; }
  const journal::Journal& journal() const { return journal_->journal(); }
  // The clock for frames, the lease and the deadlines of the node: it also advances while the
  // machine is suspended.
  static Time now();

  void apply(const Settings& settings);

  // Called at the end of a tick, after the commands: submits the collected facts, does what is due,
  // and applies committed entries. Returns true if more is to be done in the next tick.
  bool drive();
  // Returns when drive() will have something to do, by the monotonic clock of ticks.
  Time next_deadline() const;

  // Writes everything applied to the journal, and marks the journal as closed properly. Afterwards
  // only idle() and drive_closing() may be called.
  void close(std::function<void()> closed);
  // Called after close(): lets the journal continue.
  void drive_closing();
  // True if no file operation is running: the object may be destroyed.
  bool idle() const { return !journal_->busy() && !storage_->busy(); }

  bool raft_log_full() const { return raft_log_full_; }

 private:
  NodeOwner(os::Log& log, commands::Service& service, NodeOwnerHost& host)
      : log_(log), service_(service), host_(host) {}

  Result<void> start(loop::Loop& loop, const Settings& settings);

  // NodeHost.
  Time clock() const override { return now(); }
  void send(cluster::NodeId to, std::string frame) override { host_.send(to, std::move(frame)); }
  void node_changed() override { host_.begin_tick(); }
  void fetch_state(cluster::NodeId from) override { host_.fetch_state(from); }
  void node_failed(const std::string& reason) override;
  void raft_log_full(bool full, const std::string& reason) override;
  bool journal_full() const override { return journal_ != nullptr && journal_->full(); }
  void appends_were_slow(cluster::NodeId follower, std::uint64_t count, Duration longest) override {
    host_.appends_were_slow(follower, count, longest);
  }
  cluster::Level level_of(cluster::NodeId member) const override { return host_.level_of(member); }
  // ReplicaHost.
  Time wall() const override;
  void begin_serving() override { host_.begin_serving(); }
  void start_again() override { host_.leadership_lost(); }
  void level_risen(cluster::Level from, cluster::Level to) override;
  void replica_failed(const std::string& reason) override;
  // JournalOwnerHost.
  void flush_requested() override { host_.begin_tick(); }
  void journal_failed() override;
  Time journal_time() override;
  Duration wall_offset() const override;
  // Replication.
  bool is_settled(JobId id) const override;
  Time applied_time() const override;

  os::Log& log_;
  commands::Service& service_;
  NodeOwnerHost& host_;
  std::unique_ptr<serving::JournalOwner> journal_;
  std::unique_ptr<disk::FileStorage> storage_;
  std::unique_ptr<cluster::Node> node_;
  std::unique_ptr<cluster::Replica> replica_;
  bool raft_log_full_ = false;
};

}  // namespace tubed::node
