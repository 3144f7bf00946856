// ReplicatedLog: the log of facts of a node that leads. A fact is durable when a majority of the
// voters has it on disk.
//
// Facts gather in an entry. At the end of a tick, if no entry is under way, all that has gathered
// is submitted to the node: this is group commit, and the entries of one submit are one commit.
// When the node has committed its last entry, durable() moves, and the Replica passes the facts to
// the journal.
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
  // An entry is full from here on; one fact may exceed it.
  static constexpr std::size_t kEntryBytes = 256U << 10;
  // Commands wait while more than this has gathered.
  static constexpr std::size_t kMostWaitingBytes = 4U << 20;

  // `journal`: takes the facts when they are committed. `now`: the time of the cluster. All outlive
  // the log.
  ReplicatedLog(Node& node, FactLog& journal, std::function<Time()> now)
      : node_(node), journal_(journal), now_(std::move(now)) {}

  void fact(const Fact& fact) override;
  bool has_room_for(std::size_t body_bytes) const override;
  bool congested() const override;
  bool flush() override;
  Time next_deadline() const override { return journal_.next_deadline(); }
  // Calls `closed` when everything is committed. The journal is closed by its owner, once the
  // replica has applied everything.
  void close(std::function<void()> closed) override { closed_ = std::move(closed); }
  LogStats stats() const override { return journal_.stats(); }
  std::uint64_t segment_of(JobId id) const override { return journal_.segment_of(id); }

  // The node has committed everything up to this entry.
  void committed(Index index);
  // No fact that was emitted for this job, or for all jobs of a tube, is under way. O(facts under
  // way) once after each change, then O(log of them).
  bool is_settled(JobId id);

 private:
  // The entries of one submit.
  struct Flight {
    Index last = 0;  // entry
    Lsn end = 0;
  };

  bool is_clean() const { return appended_ == durable_; }
  void submit();

  Node& node_;
  FactLog& journal_;
  std::function<Time()> now_;
  std::deque<EntryWriter> waiting_ = std::deque<EntryWriter>(1);  // the last one gathers
  std::size_t waiting_bytes_ = 0;                                 // of the others
  std::deque<Flight> flights_;                                    // one at most, for now
  // The job of each fact under way, with the position after it; 0: jobs of a whole tube.
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
