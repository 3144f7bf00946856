// Node: one member of a cluster: libraft's core, with its disk and its messages.
//
// The core (core.h) decides: elections, terms, which entries are committed, membership. It receives
// events and returns updates, which the node carries out in this order:
//
//  1. A changed term or vote is stored before anything that depends on it.
//  2. New entries go to the raft log, which writes them in the background. The core is informed
//     when they are on disk; a follower answers only then.
//  3. Messages are sent. A message with entries takes them from the raft log; if they were cut, the
//     message is dropped, and the core sends the other node a fetch instead.
//  4. The host is informed that something may have become committed, or that the role has changed.
//
// Entries may be applied up to applicable(): committed, and on this node's own disk. A journal
// ahead of its raft log could hold facts that the cluster later replaces.
//
// A node answers no vote request in the first election timeout of its life, because it no longer
// knows which leader it has followed (lease.h).
//
// The memory of a node is mainly its raft log, which has all its entries in memory:
//
//  - entries that the journal has on disk: the newest, at most kept_entries and kept_bytes, but at
//    least one; on a leader, also older entries that a follower lacks, while the log has at most
//    log.log_bytes;
//  - entries that the journal does not have yet. Their number grows only while they can be stored,
//    so the disk bounds them. Entries that are not stored are bounded by in_flight_bytes on a
//    follower, and by unstored_bytes and the entries under way on a leader (ReplicatedLog).
//
// Invariant: no message is sent before the term and the vote on which it depends are durable.
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
#include "cluster/append_queue.h"
#include "cluster/chains.h"
#include "cluster/cluster_clock.h"
#include "cluster/core.h"
#include "cluster/entry.h"
#include "cluster/followers.h"
#include "cluster/lease.h"
#include "cluster/levels.h"
#include "cluster/member.h"
#include "cluster/message.h"
#include "cluster/node_state.h"
#include "cluster/part.h"
#include "cluster/raft_log.h"
#include "cluster/types.h"
#include "facts/fact.h"
#include "journal/storage.h"

namespace tubed::cluster {

// The program that runs the node.
class NodeHost {
 public:
  // Reads the monotonic clock.
  virtual Time clock() const = 0;
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

class Node final : private RaftLogHost {
 public:
  // Continues from the disk. `base` is the position of the journal. The error is one line: no
  // state, a level that the program does not know, another cluster, damage, or a raft log that does
  // not reach the position or has another term there. Blocks while it reads the raft log.
  static Result<std::unique_ptr<Node>> open(journal::Storage& storage, NodeHost& host,
                                            const NodeOptions& options, const Applied& base);
  ~Node();

  NodeId id() const { return state_.node; }
  std::uint64_t cluster() const { return state_.cluster; }

  // Receives a frame from another node. Drops a frame that cannot be decoded or is for another node
  // or cluster. O(bytes).
  void receive(std::string_view frame);
  // Ends a tick: does what is due, and writes unstored entries.
  void tick();
  // Returns when tick() will have something to do.
  Time next_deadline() const;

  bool leads() const;
  Term term() const;
  // Returns the leader that this node follows; 0: unknown, or this node leads.
  NodeId leader() const;
  bool is_candidate() const;
  // Returns when a node that follows a leader begins an election, if it hears nothing until then.
  Time election_deadline() const {
    return Time(std::chrono::milliseconds(core_deadline(core_.get())));
  }
  // On a leader: the last entry that this member is known to have. Nothing: unknown.
  std::optional<Index> match(NodeId member) const;
  // On a leader: when this other member last answered, or before its first answer, when it was
  // added or this node was elected. Nothing: this node does not lead.
  std::optional<Time> silent_since(NodeId member) const;
  // Returns until when this node can be sure that no other node leads. Time::min(): it does not
  // lead, or cannot be sure.
  Time lease_end() const;
  // True if this node leads and, by the host's clock, no other node does.
  bool has_lease() const { return host_.clock() < lease_end(); }

  // The time of the cluster as received in the frames of leaders. A leader sets it.
  ClusterClock& time() { return time_; }
  const ClusterClock& time() const { return time_; }

  Index last() const { return log_->last(); }
  Index committed() const { return commit_; }
  // Returns the entry that set the current configuration. It may not be committed, and then another
  // leader may undo it.
  Index members_index() const { return members_index_; }
  Index applicable() const;
  // Returns the last entry on disk.
  Index stored() const { return log_->stored(); }
  // Precondition: the entry is in the raft log.
  const Entry& entry(Index index) const { return log_->at(index); }
  const RaftLog& log() const { return *log_; }
  // Returns the chain of everything up to the last entry.
  Chain tail_chain() const { return chains_.tail(); }
  // Returns the chain of everything up to this entry. Precondition: the journal has not synced a
  // later entry.
  Chain chain(Index index) const { return chains_.at(index); }

  // True if submit() can append. False while leadership is being transferred.
  bool can_submit() const;
  // Appends entries of facts in the leader's term. Returns the index of the first; 0: cannot
  // append.
  Index submit(std::vector<Bytes> entries);
  // Appends a configuration with one member added, removed or in another role. Returns false if the
  // node does not lead, a change is under way, a new voter has not caught up, or too many voters do
  // not know the previous change: a node that does not know that it is a voter does not vote.
  bool change_members(const std::vector<Member>& members);
  std::vector<Member> members() const;
  // True if a member without a state may get this id and this node's state: it is a standby in the
  // newest configuration, and this node has the lease. A voter that has lost its disk has forgotten
  // its votes. Without the lease, another leader may have made the member a voter.
  bool may_invite(NodeId member) const;
  // Gives up the lease and asks another voter, or any voter (0), to take over. Returns false if the
  // node does not lead or no such voter exists. If nothing happens within an election timeout, the
  // core gives up. The lease returns when the other voter has answered a later frame, because
  // everything sent to it before has then arrived or is lost.
  bool transfer(NodeId to);
  // True if the other voter does not answer either, so the lease does not return. Another election
  // must decide: the node must be started again.
  bool is_stranded() const;

  // True if the lease was given up for a transfer that is under way.
  bool is_transferring() const { return lease_.given_up(); }

  // Returns the level in use in the cluster, as far as this node has applied its entries.
  Level level() const { return state_.level; }
  // Returns the highest level that this program knows.
  Level known_level() const { return options_.level; }
  // An entry of this level is about to be applied: stores the level durably if it is higher.
  // Returns false if that fails.
  bool raise_level(Level level);
  // Returns the highest level that all members know; 0 if one of them is not connected. O(members).
  Level common_level() const;

  // Changes RaftLogOptions::log_bytes.
  void set_log_bytes(std::uint64_t bytes) { log_->set_log_bytes(bytes); }
  // The journal has everything up to this position on disk: older entries may be cut.
  void journal_synced(Index position);
  bool has_room_for(std::size_t bytes) const { return log_->has_room(bytes); }
  // True if facts should not be accepted: the raft log has too many unstored bytes, or the quickest
  // majority needs more than half an election timeout for what it lacks and `waiting` further
  // bytes. O(voters).
  bool congested(std::uint64_t waiting = 0) const {
    return log_->unstored_bytes() > options_.unstored_bytes || links_are_congested(waiting);
  }
  // True if appends to this follower wait: a message that is sent now overtakes them.
  bool has_waiting_entries(NodeId follower) const;
  // Returns the bytes per second that the link to a follower carries, by its answers; 0: unknown.
  double link_rate(NodeId follower) const;
  // Returns the lowest known rate of a link to a follower; 0: none is known. O(followers).
  double lowest_link_rate() const;
  // Returns how long the raft log has been storing entries without success; 0: nothing is to be
  // stored. A leader for which this takes long, or whose raft log is full, should transfer its
  // leadership.
  Duration oldest_write() const;
  // True if the disk has no room for further jobs.
  bool full() const { return log_->full() || host_.journal_full(); }
  // On a leader: true if this member has answered and its disk has room for further jobs. O(log
  // members).
  bool has_room(NodeId member) const { return followers_.has_room(member); }
  // On a leader: true if the disks of a majority of the voters have room for further jobs.
  // O(members).
  bool majority_has_room() const;
  // Another node fetches the state: entries from `first` are not cut unless the raft log exceeds
  // its bound. Replaces an earlier pin().
  void pin(Index first) { pinned_ = first; }
  void unpin() { pinned_ = kMostIndex; }
  // Returns the encoded configuration in force at this entry, and the entry that set it. The text
  // is valid until the next event. O(entries before it).
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
  void store_node();
  void store_entries(Index first, std::span<const Entry> entries);
  void receive(const Message& message);
  void send(const core_message& message);
  bool uses_parts() const;
  AppendQueue& queue_of(NodeId follower);
  bool links_are_congested(std::uint64_t waiting) const;
  void drop_if_stuck(NodeId follower);
  void send_append(Message append);
  void send_queued(NodeId follower);
  void take_acknowledgement(NodeId follower, Time stamp);
  void take_rejection(const Message& rejection);
  void hear(NodeId from, Term term, Time sent);
  void receive_part(std::string_view frame);
  void receive_sign_of_life(const Part& part);
  void return_time(const Part& part);
  void explain(Message& rejection) const;
  void take_entries(const core_message& message, Message& frame);
  void take_committed();
  void fail(const std::string& reason);
  Index first_kept(Index position) const;
  Index first_needed(Index position) const;
  Result<void> keep_configuration(Index first);
  bool would_elect(const std::vector<Member>& members) const;
  void follow_configuration();

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
  // Of the current configuration, which may not be committed.
  std::vector<NodeId> voters_;
  Index members_index_ = 0;
  ClusterClock time_;
  Time started_;
  mutable std::uint64_t milliseconds_ = 0;  // as last passed to the core
  Index commit_ = 0;
  Index reported_ = 0;  // as stored, to the core
  Index synced_ = 0;    // position of the journal when entries were last cut
  Index pinned_ = kMostIndex;
  Chains chains_;
  Time seal_at_ = kNever;  // when the raft log is sealed, unless an entry arrives before
  std::map<NodeId, Heard> heard_;
  Followers followers_;
  std::map<NodeId, AppendQueue> queues_;  // of a leader
  PartAssembly assembly_;                 // of the leader's append
  NodeId transferee_ = 0;                 // last target of a transfer
  Time transfer_ended_ = kNever;  // when it ended without effect; kNever: under way, or no transfer
  bool failed_ = false;
};

}  // namespace tubed::cluster
