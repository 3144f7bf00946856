// Node: one member of a cluster: libraft's core with the disk and the messages around it.
//
// The core (core.h) decides: elections, terms, which entries are committed, membership. It takes
// events and returns what is to be done, and a node does it in this order:
//
//  1. A term or a vote that has changed is stored, before anything that follows from it.
//  2. New entries go to the raft log, which writes them in the background. When they are on the
//     disk, the core is informed; a follower answers only then.
//  3. Messages are sent. A message with entries takes them from the raft log; if they are cut,
//     the message is dropped, and the core sends the other node a fetch instead.
//  4. The host is informed that something may have become committed, or that the role has changed.
//
// Entries may be applied up to applicable(): committed, and on this node's own disk. A journal that
// were ahead of its raft log could hold what the cluster later replaces.
//
// A node answers no request for a vote in the first election timeout of its life, because it does
// not know any more which leader it has followed (lease.h).
//
// The memory of a node is that of its raft log, which has all its entries in memory:
//
//  - those that the journal has on its disk: the newest entries, at most kept_entries, and at
//    most kept_bytes of them unless one alone is larger; on a leader, also older entries that a
//    follower lacks, as long as the log has log.log_bytes at most;
//  - those that the journal does not have yet. They become more only while they can be stored, so
//    that their bound is the disk, and of those that are not stored, in_flight_bytes on a follower,
//    and unstored_bytes and what is under way on a leader (ReplicatedLog).
//
// Invariant: no message leaves before the term and the vote that it rests on are durable.
// Invariant: of two nodes, at most one has a lease at any time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cluster/chains.h"
#include "cluster/cluster_clock.h"
#include "cluster/core.h"
#include "cluster/entry.h"
#include "cluster/followers.h"
#include "cluster/lease.h"
#include "cluster/member.h"
#include "cluster/message.h"
#include "cluster/node_state.h"
#include "cluster/raft_log.h"
#include "cluster/types.h"
#include "engine/fact.h"
#include "journal/storage.h"

namespace tubed::cluster {

// The program that runs the node, as the node sees it.
class NodeHost {
 public:
  // The monotonic clock, read now.
  virtual Time clock() const = 0;
  // Sends a frame, or loses it.
  virtual void send(NodeId to, std::string frame) = 0;
  // applicable(), committed(), leads() or the lease may have changed. The host looks later, never
  // within the call.
  virtual void node_changed() = 0;
  // This node lacks entries that the leader has cut: it has to fetch the state. Called again with
  // each heartbeat until it has.
  virtual void fetch_state(NodeId from) = 0;
  // Nothing more is stored or sent. Called once.
  virtual void node_failed(const std::string& reason) = 0;
  // Writing waits for space, or no longer does.
  virtual void raft_log_full(bool full, const std::string& reason) = 0;
  // The journal has no room for more jobs.
  virtual bool journal_full() const { return false; }

 protected:
  ~NodeHost() = default;
};

struct NodeOptions {
  Duration election_timeout = std::chrono::milliseconds(300);
  unsigned seed = 1;  // of the random part of the election timeout
  // How many entries up to the journal's position are kept, and how many bytes of them at most; at
  // least one entry. A node that lags less than that needs no state.
  Index kept_entries = 4096;
  std::uint64_t kept_bytes = 64 << 20;
  // More bytes of entries are not sent to a node without an answer, unless it is one entry. An
  // append has no more either.
  std::uint64_t in_flight_bytes = 16 << 20;
  // A leader with more bytes of entries that its own disk has not stored is congested().
  std::uint64_t unstored_bytes = 64 << 20;
  // Followers that are reached get older entries kept up to log.log_bytes.
  RaftLogOptions log;
};

class Node final : private RaftLogHost {
 public:
  // Continues from the disk. `base`: the position of the journal. The error is one line: no state,
  // another cluster, damage, a raft log that does not reach the position or has another term there.
  // Blocks for as long as reading the raft log takes.
  static Result<std::unique_ptr<Node>> open(journal::Storage& storage, NodeHost& host,
                                            const NodeOptions& options, const Applied& base);
  ~Node();

  NodeId id() const { return state_.node; }
  std::uint64_t cluster() const { return state_.cluster; }

  // Takes a frame that another node has sent. A frame that cannot be decoded, or is for another
  // node or cluster, is dropped. O(bytes).
  void receive(std::string_view frame);
  // Ends a tick: does what is due, and writes what is to be stored.
  void tick();
  // When tick() has something to do.
  Time next_deadline() const;

  bool leads() const;
  Term term() const;
  // The leader that this node follows; 0: it knows none, or leads.
  NodeId leader() const;
  bool is_candidate() const;
  // Of a leader: the last entry that this member is known to have. Nothing: not known.
  std::optional<Index> match(NodeId member) const;
  // Of a leader: when this other member last answered it, or, if it has not yet, when it was added
  // or this node was elected. Nothing: this node does not lead.
  std::optional<Time> silent_since(NodeId member) const;
  // Until when this node may be sure that no other leads. Time::min(): it does not lead, or is not.
  Time lease_end() const;
  // It leads, and no other does at this moment, which the host's clock gives.
  bool has_lease() const { return host_.clock() < lease_end(); }

  // The time of the cluster, as far as the frames of leaders have carried it here. A leader sets
  // it.
  ClusterClock& time() { return time_; }
  const ClusterClock& time() const { return time_; }

  Index last() const { return log_->last(); }
  Index committed() const { return commit_; }
  Index applicable() const;
  // The last that is on the disk.
  Index stored() const { return log_->stored(); }
  // Precondition: it is in the raft log.
  const Entry& entry(Index index) const { return log_->at(index); }
  const RaftLog& log() const { return *log_; }
  // The chain of everything up to the last entry.
  Chain tail_chain() const { return chains_.tail(); }
  // The chain of everything up to that entry. Precondition: the journal has not synced a later
  // entry.
  Chain chain(Index index) const { return chains_.at(index); }

  // True: submit() appends. Not while leadership is being transferred.
  bool can_submit() const;
  // Appends entries of facts, with the leader's term. Returns the index of the first; 0: it cannot.
  Index submit(std::vector<Bytes> entries);
  // Appends another configuration, with one member more, less, or in another role. False: it does
  // not lead, a change is under way, a new voter has not caught up, or too many voters do not know
  // of the change before: a node that takes itself for no voter does not vote.
  bool change_members(const std::vector<Member>& members);
  std::vector<Member> members() const;
  // True if a member that has no state may get this id, and the state of this node: it is a standby
  // by the newest configuration, and this node has the lease. A voter that has lost its disk has
  // forgotten its votes. Without the lease, another leader may have made the member a voter.
  bool may_invite(NodeId member) const;
  // Gives the lease up, and asks another voter, 0 for any, to take over. False: it does not lead,
  // or there is no such voter. If that has no effect within an election timeout, the core gives up.
  // The lease comes back when the other voter has answered a later frame, because what was sent to
  // it before has arrived or is lost then.
  bool transfer(NodeId to);
  // True: the other voter does not answer either, so that the lease does not come back. Another
  // election has to decide: the node is to be started again.
  bool is_stranded() const;

  // The lease was given up for a transfer that is under way.
  bool is_transferring() const { return lease_.given_up(); }

  // RaftLogOptions::log_bytes from now on.
  void set_log_bytes(std::uint64_t bytes) { log_->set_log_bytes(bytes); }
  // The journal has everything up to this position on the disk: older entries may go.
  void journal_synced(Index position);
  bool has_room_for(std::size_t bytes) const { return log_->has_room(bytes); }
  // The raft log has too many unstored bytes for more facts.
  bool congested() const { return log_->unstored_bytes() > options_.unstored_bytes; }
  // How long the raft log has been storing entries without success; 0: nothing is to be stored. A
  // leader that this takes long should transfer its leadership, as one whose raft log is full
  // should.
  Duration oldest_write() const;
  // The disk has no room for more jobs.
  bool full() const { return log_->full() || host_.journal_full(); }
  // Of a leader: this member has answered, and its disk has room for more jobs. O(log members).
  bool has_room(NodeId member) const { return followers_.has_room(member); }
  // Of a leader: the disks of a majority of the voters have room for more jobs. O(members).
  bool majority_has_room() const;
  // Entries from `first` on are not cut, unless the raft log exceeds its bound: another node
  // fetches the state. Replaces an earlier pin().
  void pin(Index first) { pinned_ = first; }
  void unpin() { pinned_ = kMostIndex; }
  // The encoded configuration that is in force at this entry, and the entry that it is from. The
  // text is valid until the next event. O(entries before it).
  std::pair<std::string_view, Index> configuration_at(Index index) const;

 private:
  Node(journal::Storage& storage, NodeHost& host, const NodeOptions& options, NodeState state);

  Result<void> start(const Applied& base);
  std::uint64_t milliseconds() const;
  bool acknowledges(const Message& message) const;
  void pass(const Message& message);
  void done(std::string_view step, int code, const core_update* update,
            std::span<const Entry> given);
  void follow_transfer();
  void take_echo(const Message& result);
  void store_state();
  void store_entries(Index first, std::span<const Entry> entries);
  void send(const core_message& message);
  void explain(Message& rejection) const;
  void take_entries(const core_message& message, Message& frame);
  void take_committed();
  void fail(const std::string& reason);
  Index first_kept(Index position) const;
  Index first_needed(Index position) const;
  Result<void> keep_configuration(Index first);
  bool would_elect(const std::vector<Member>& members) const;
  void find_voters();

  void entries_stored(Index last, Term term) override;
  void report_failure(const std::string& reason) override { fail(reason); }
  void report_full(bool full, const std::string& reason) override {
    host_.raft_log_full(full, reason);
  }
  void request_flush() override { host_.node_changed(); }
  Time now() const override { return host_.clock(); }

  struct FreeCore {
    void operator()(tubed_core* core) const { core_destroy(core); }
  };
  // The newest frame of a leader.
  struct Heard {
    Term term = 0;
    Time sent;
  };

  journal::Storage& storage_;
  NodeHost& host_;
  NodeOptions options_;
  NodeState state_;
  std::unique_ptr<RaftLog> log_;
  std::unique_ptr<tubed_core, FreeCore> core_;
  Lease lease_;
  std::vector<NodeId> voters_;  // of the configuration in force, which may not be committed
  ClusterClock time_;
  Time started_;
  mutable std::uint64_t milliseconds_ = 0;  // as the core last saw them
  Index commit_ = 0;
  Index reported_ = 0;  // as stored, to the core
  Index synced_ = 0;    // the journal's position when entries were last cut
  Index pinned_ = kMostIndex;
  Chains chains_;
  Time seal_at_ = kNever;  // the raft log is sealed if no entry comes before
  std::map<NodeId, Heard> heard_;
  Followers followers_;
  NodeId transferee_ = 0;         // that leadership was to pass to last
  Time transfer_ended_ = kNever;  // without effect; kNever: it is under way, or none began
  bool failed_ = false;
};

}  // namespace tubed::cluster
