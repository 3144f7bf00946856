// ReplicatedLog: the log of facts of a node that leads. A fact is durable when a majority of the
// voters has it on disk and the node certainly still leads.
//
// Facts are collected in an entry, which begins and ends between units. At the end of a tick, if no
// entry is under way, all collected facts are submitted to the node: this is group commit, and the
// entries of one submit are one commit. When the node has committed the last of them, durable()
// moves, and the Replica passes the facts to the journal.
//
// Replies are sent while the node has its lease (lease.h). flush() checks that with a clock that it
// reads itself, after the replies of the tick were made. Without a lease durable() does not move,
// and flush() appends a position without a fact: replies that show only committed facts then wait
// too.
//
// The engine is ahead of the committed facts, which the journal must not see. When compaction asks
// for a job with a fact under way, is_settled() is false, and compaction asks again later. To bound
// that wait, the log then reports that it is congested until everything is committed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "cluster/entry.h"
#include "cluster/node.h"
#include "facts/fact_log.h"

namespace tubed::cluster {

class ReplicatedLog final : public FactLog {
 public:
  // The size of a full entry; a single fact or unit may exceed it.
  static constexpr std::size_t kEntryBytes = 256U << 10;
  // Commands wait while more than this has been collected.
  static constexpr std::size_t kMostWaitingBytes = 4U << 20;

  // `journal` receives the facts when they are committed. `now` returns the time of the cluster.
  // All arguments outlive the log, which is for the current term of the node.
  ReplicatedLog(Node& node, FactLog& journal, std::function<Time()> now)
      : node_(node), journal_(journal), now_(std::move(now)), term_(node.term()) {}

  void fact(const Fact& fact) override;
  void begin_unit() override;
  void end_unit() override { in_unit_ = false; }
  bool has_room_for(std::size_t body_bytes) const override;
  bool congested() const override;
  bool flush() override;
  // The owner of the journal handles the journal's deadlines.
  Time next_deadline() const override { return kNever; }
  // Calls `closed` when everything is committed. The owner of the journal closes the journal when
  // the replica has applied everything.
  void close(std::function<void()> closed) override { closed_ = std::move(closed); }
  LogStats stats() const override { return journal_.stats(); }
  std::uint64_t segment_of(JobId id) const override { return journal_.segment_of(id); }

  // The node has committed everything up to this entry.
  void committed(Index index);
  // True if every fact is committed.
  bool is_clean() const { return facts_ == committed_facts_; }
  // Returns how often flush() has found that the lease was lost since the log was opened.
  std::uint64_t leases_lost() const { return leases_lost_; }
  // True if no fact about this job, or about all jobs of a tube, is under way. O(facts under way)
  // once after each change, then O(log of them).
  bool is_settled(JobId id);

 private:
  // The entries of one submit.
  struct Flight {
    Index last = 0;  // entry
    Lsn end = 0;     // facts
  };

  void leave_full_entry();
  void submit();
  bool confirm();

  Node& node_;
  FactLog& journal_;
  std::function<Time()> now_;
  Term term_;
  std::deque<EntryWriter> waiting_ = std::deque<EntryWriter>(1);  // the last collects facts
  std::size_t waiting_bytes_ = 0;                                 // of the other writers
  bool in_unit_ = false;
  std::deque<Flight> flights_;  // at most one at present
  // appended() counts facts and positions without a fact. Such a position is appended only while
  // all facts are committed, so a single counter suffices.
  Lsn facts_ = 0;
  Lsn committed_facts_ = 0;
  Lsn without_facts_ = 0;
  bool had_lease_ = false;
  std::uint64_t leases_lost_ = 0;
  // The job of each fact under way, and the number of facts up to it; 0: jobs of a whole tube.
  struct Unsettled {
    Lsn end = 0;
    JobId job = 0;
  };
  std::deque<Unsettled> unsettled_;
  std::vector<JobId> unsettled_jobs_;  // sorted; as of unsettled_at_
  Lsn unsettled_at_ = 0;
  bool wants_quiet_ = false;
  std::function<void()> closed_;
};

}  // namespace tubed::cluster
