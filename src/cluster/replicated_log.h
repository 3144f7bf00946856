// ReplicatedLog: the log of facts of a node that leads. A fact is durable when a majority of the
// voters has it on disk, and the node certainly still leads.
//
// Facts gather in an entry, which begins and ends between units. At the end of a tick, if no entry
// is under way, all that has gathered is submitted to the node: this is group commit, and the
// entries of one submit are one commit. When the node has committed its last entry, durable()
// moves, and the Replica passes the facts to the journal.
//
// Replies are sent while the node has its lease (lease.h), which flush() looks at with a clock that
// is read then, after the replies of the tick were made. Without a lease durable() does not move,
// and flush() appends a position without a fact, so that replies which show only what is committed
// wait too.
//
// The engine is ahead of what is committed. The journal must not see that: when compaction asks for
// a job that has a fact under way, is_settled() is false, and compaction asks again later. So that
// this ends, the log then reports that it is congested until everything is committed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "cluster/entry.h"
#include "cluster/node.h"
#include "engine/fact_log.h"

namespace tubed::cluster {

class ReplicatedLog final : public FactLog {
 public:
  // The size of a full entry; one fact or unit may exceed it.
  static constexpr std::size_t kEntryBytes = 256U << 10;
  // Commands wait while more than this has gathered.
  static constexpr std::size_t kMostWaitingBytes = 4U << 20;

  // `journal`: takes the facts when they are committed. `now`: the time of the cluster. All outlive
  // the log, which is for the present term of the node.
  ReplicatedLog(Node& node, FactLog& journal, std::function<Time()> now)
      : node_(node), journal_(journal), now_(std::move(now)), term_(node.term()) {}

  void fact(const Fact& fact) override;
  void begin_unit() override;
  void end_unit() override { in_unit_ = false; }
  bool has_room_for(std::size_t body_bytes) const override;
  bool congested() const override;
  bool flush() override;
  // The owner of the journal keeps the journal's deadlines.
  Time next_deadline() const override { return kNever; }
  // Calls `closed` when everything is committed. The journal is closed by its owner, once the
  // replica has applied everything.
  void close(std::function<void()> closed) override { closed_ = std::move(closed); }
  LogStats stats() const override { return journal_.stats(); }
  std::uint64_t segment_of(JobId id) const override { return journal_.segment_of(id); }

  // The node has committed everything up to this entry.
  void committed(Index index);
  // Every fact is committed.
  bool is_clean() const { return facts_ == committed_facts_; }
  // Since the log was opened, how often flush() has found no lease after it had found one.
  std::uint64_t leases_lost() const { return leases_lost_; }
  // No fact that was emitted for this job, or for all jobs of a tube, is under way. O(facts under
  // way) once after each change, then O(log of them).
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
  std::deque<EntryWriter> waiting_ = std::deque<EntryWriter>(1);  // the last one gathers
  std::size_t waiting_bytes_ = 0;                                 // of the others
  bool in_unit_ = false;
  std::deque<Flight> flights_;  // one at most, for now
  // appended() is the number of facts and of positions without a fact. Such a position is appended
  // only while all facts are committed, so that one number of them serves all.
  Lsn facts_ = 0;
  Lsn committed_facts_ = 0;
  Lsn without_facts_ = 0;
  bool had_lease_ = false;
  std::uint64_t leases_lost_ = 0;
  // The job of each fact under way, with the number of facts up to it; 0: jobs of a whole tube.
  struct Unsettled {
    Lsn end = 0;
    JobId job = 0;
  };
  std::deque<Unsettled> unsettled_;
  std::vector<JobId> unsettled_jobs_;  // sorted, as of unsettled_at_
  Lsn unsettled_at_ = 0;
  bool wants_quiet_ = false;
  std::function<void()> closed_;
};

}  // namespace tubed::cluster
