// Node: one member of a cluster: libraft's core, with its disk and its messages.
//
// The core (core.h) decides: elections, terms, which entries are committed, membership. It receives
// events and returns updates, which the node carries out in this order:
//
//  1. A changed term or vote is stored before anything that depends on it.
//  2. New entries go to the raft log, which writes them in the background. The core is informed
//     when they are on disk; a follower answers only then.
//  3. Messages are sent. An append takes its entries from the raft log (append_sender.h); if they
//     were cut, it is dropped, and the core sends the other node a fetch instead.
//  4. The host is informed that something may have become committed, or that the role has changed.
//
// Entries may be applied up to applicable(): committed, and on this node's own disk. A journal
// ahead of its raft log could hold facts that the cluster later replaces.
//
// A node answers no vote request in the first election timeout of its life, because it no longer
// knows which leader it has followed (lease.h).
//
// A part of an append (part.h) is a sign of life only if the core accepts it: the node passes to
// its core an append without entries at its own last committed entry. Only then does it return the
// time at which the part was sent, on which the leader's lease rests.
//
// The memory of a node is mainly its raft log, which has all its entries in memory:
//
//  - entries that the journal has on disk: the newest, and as long as the log has at most
//    log.log_bytes, those that another node lacks (kept_entries.h);
//  - entries that the journal does not have yet. Their number grows only while they can be stored,
//    so the disk bounds them. Entries that are not stored are bounded by in_flight_bytes on a
//    follower, and by unstored_bytes and the entries under way on a leader (ReplicatedLog).
//
// Invariant: no message is sent before the term and the vote on which it depends are durable.
// Invariant: of two nodes, at most one has a lease at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cluster/append_sender.h"
#include "cluster/chains.h"
#include "cluster/cluster_clock.h"
#include "cluster/configurations.h"
#include "cluster/core.h"
#include "cluster/entry.h"
#include "cluster/entry_times.h"
#include "cluster/followers.h"
#include "cluster/kept_entries.h"
#include "cluster/leader_frames.h"
#include "cluster/levels.h"
#include "cluster/member.h"
#include "cluster/message.h"
#include "cluster/node_host.h"
#include "cluster/node_state.h"
#include "cluster/part.h"
#include "cluster/raft_core.h"
#include "cluster/raft_log.h"
#include "cluster/types.h"
#include "journal/storage.h"

namespace tubed::cluster {

class Node final : private RaftLogHost {
 public:
  // Continues from the disk. `base` is the position of the journal. The error is one line: no
  // state, a level that the program does not know, another cluster, damage, or a raft log that does
  // not reach the position or has another term there. Blocks while it reads the raft log.
  static Result<std::unique_ptr<Node>> open(journal::Storage& storage, NodeHost& host,
                                            const NodeOptions& options, const Applied& base);

  NodeId id() const { return state_.node; }
  std::uint64_t cluster() const { return state_.cluster; }

  // Receives a frame on the connection of node `from`. Returns why no node sends such a frame, for
  // the log, in which case it has no effect; otherwise nothing. O(bytes).
  std::string_view receive(NodeId from, std::string_view frame);
  // Ends a tick: does what is due, and writes unstored entries.
  void tick();
  // Returns when tick() will have something to do.
  Time next_deadline() const;

  bool leads() const;
  Term term() const;
  // Returns the leader that this node follows; 0: unknown, or this node leads.
  NodeId leader() const;
  // On a leader: the last entry that this member is known to have. Nothing: unknown.
  std::optional<Index> match(NodeId member) const;
  // On a leader: when this other member last answered, or before its first answer, when it was
  // added or this node was elected. Nothing: this node does not lead.
  std::optional<Time> silent_since(NodeId member) const;
  // On a leader: how long ago the oldest entry was appended that is not on the disk of this member;
  // 0: it has all. Nothing: not known, as before its first answer.
  std::optional<Duration> lag(NodeId member) const;
  // On a leader: how far the wall clock of this follower was from its own at the last answer.
  // Nothing: not known.
  std::optional<Duration> clock_difference(NodeId member) const {
    return leads() ? followers_.clock_difference(member) : std::nullopt;
  }
  // Returns until when this node can be sure that no other node leads. Time::min(): it does not
  // lead, or cannot be sure.
  Time lease_end() const;
  // True if this node leads and, by the host's clock, no other node does.
  bool has_lease() const { return host_.clock() < lease_end(); }

  // The time of the cluster as received in the frames of leaders. A leader sets it.
  ClusterClock& time() { return time_; }
  const ClusterClock& time() const { return time_; }

  Index committed() const { return commit_; }
  Index applicable() const;
  // For its settings, and to read it.
  RaftLog& log() { return *log_; }
  const RaftLog& log() const { return *log_; }
  // The chains of the entries that the journal has not synced.
  const Chains& chains() const { return chains_; }
  const RaftCore& core() const { return core_; }
  const Configurations& configurations() const { return *configurations_; }
  // For pin(): another node fetches the state.
  KeptEntries& kept_entries() { return *kept_entries_; }
  // For a leader: its appends to the followers, and the rates of their links.
  const AppendSender& appends() const { return *appends_; }

  // True if submit() can append. False while leadership is being transferred.
  bool can_submit() const;
  // Appends entries of facts in the leader's term. Returns the index of the first; 0: cannot
  // append.
  Index submit(std::vector<Bytes> entries);
  // Appends a configuration with one member added, removed or in another role. Returns false if the
  // node does not lead, a change is under way, a new voter has not caught up, or too many voters do
  // not know the previous change: a node that does not know that it is a voter does not vote.
  bool change_members(const std::vector<Member>& members);
  // Returns the members of the newest configuration.
  std::vector<Member> members() const { return core_.members(); }
  // True if a member without a state may get this id and this node's state: it is a standby in the
  // newest configuration, and this node has the lease. A voter that has lost its disk has forgotten
  // its votes. Without the lease, another leader may have made the member a voter.
  bool may_invite(NodeId member) const;
  // Gives up the lease and asks another voter, or any voter (0), to take over. Returns false if the
  // node does not lead or no such voter exists. If nothing happens within an election timeout, the
  // core gives up, and the lease may return (Lease::give_up()).
  bool transfer(NodeId to);
  // True if the other voter does not answer either, so the lease does not return. Another election
  // must decide: the node must be started again.
  bool is_stranded() const;
  // True if the lease was given up for a transfer that is under way.
  bool is_transferring() const { return followers_.lease().given_up(); }

  // Returns the level in use in the cluster, as far as this node has applied its entries.
  Level level() const { return state_.level; }
  // Returns the highest level that this program knows.
  Level known_level() const { return options_.level; }
  // An entry of this level is about to be applied: stores the level durably if it is higher.
  // Returns false if that fails.
  bool raise_level(Level level);
  // Returns the highest level that all members know; 0 if one of them is not connected. O(members).
  Level common_level() const;

  // The journal has everything up to this position on disk: older entries may be cut.
  void journal_synced(Index position);
  // True if facts should not be accepted: the raft log has too many unstored bytes, or the quickest
  // majority needs more than half an election timeout for what it lacks and `waiting` further
  // bytes. O(voters).
  bool congested(std::uint64_t waiting = 0) const {
    return log_->unstored_bytes() > options_.unstored_bytes ||
           appends_->is_congested(configurations_->voters(), state_.node, commit_, waiting);
  }
  // True if the disk has no room for further jobs.
  bool full() const { return log_->full() || host_.journal_full(); }
  // On a leader: true if this member has answered and its disk has room for further jobs. O(log
  // members).
  bool has_room(NodeId member) const { return followers_.has_room(member); }
  // On a leader: true if the disks of a majority of the voters have room for further jobs.
  // O(members).
  bool majority_has_room() const;

 private:
  Node(journal::Storage& storage, NodeHost& host, const NodeOptions& options, NodeState state);

  Result<void> start(const Applied& base);
  Result<void> start_core(const Applied& base);
  std::string_view receive(const Message& message);
  std::string_view receive_part(NodeId from, std::string_view frame);
  bool receive_sign_of_life(const Part& part);
  bool pass(const Message& message);
  void take_echo(const Message& result);
  void done(std::string_view step, int code, const core_update* update,
            std::span<const Entry> given);
  void store_state();
  void store_entries(Index first, std::span<const Entry> entries);
  void send(const core_message& message);
  void take_committed();
  void fail(const std::string& reason);

  void entries_stored(Index last, Term term) override;
  void report_failure(const std::string& reason) override { fail(reason); }
  void report_full(bool full, const std::string& reason) override {
    host_.raft_log_full(full, reason);
  }
  void request_flush() override { host_.node_changed(); }
  Time now() const override { return host_.clock(); }

  journal::Storage& storage_;
  NodeHost& host_;
  const NodeOptions options_;
  NodeState state_;
  RaftCore core_;
  std::unique_ptr<RaftLog> log_;
  // These three read the log.
  std::unique_ptr<Configurations> configurations_;
  std::unique_ptr<KeptEntries> kept_entries_;
  std::unique_ptr<AppendSender> appends_;  // of a leader
  Followers followers_;                    // of a leader
  EntryTimes entry_times_;                 // of a leader
  LeaderFrames leader_frames_;
  Chains chains_;
  ClusterClock time_;
  Time started_;
  Index commit_ = 0;
  Index reported_ = 0;     // as stored, to the core
  Time seal_at_ = kNever;  // when the raft log is sealed, unless an entry arrives before
  bool failed_ = false;
};

}  // namespace tubed::cluster
