// Journal: the log of facts on disk. It encodes the facts of a tick, writes them while the next
// tick runs, and keeps the log short. This class owns the parts, runs them in order, and closes
// them. Each part has one task, which its header explains:
//
//   SegmentLiveness    which records are live, and in which segments
//   Preallocator       open files, allocated ahead of need
//   ClosedFiles        lengths of the other files
//   Space              reserve, bounds, when to grow              (the space protocol)
//   SegmentCloser      trims, syncs and closes files that the log has left
//   Syncer             which facts the disk has; interval syncs
//   Appender           encodes facts into pending batches
//   Committer          writes the batches                         (the commit protocol)
//   Compactor          copies live records out of the oldest segment
//   SegmentRemover     removes or reuses dead segments
//   DeadlineRewriter   writes deadlines again after a step of the wall clock
//
// A part uses only parts above it in this list. Recovery (recovery.h) is separate and runs before.
//
// Calls come from two sides, on one thread. The host calls fact() and flush(). Storage completes
// background operations; each completion ends in advance(), which lets waiting parts continue and
// asks the host for a flush().
//
// An orderly stop:
//  1. close() is called. The host appends no further facts, and the journal no longer compacts,
//     removes segments or grows ahead of need.
//  2. Outstanding deadlines are rewritten.
//  3. When the commit in flight has ended, the pending batches are committed.
//  4. Everything written is synced, in any mode.
//  5. A batch without facts, marked `clean`, is written and synced. Its `durable` covers all facts:
//     damage to any of them is never mistaken for a torn tail.
//  6. When no background operation remains, `closed` is called.
//
// Invariant: facts become durable in the order in which they were appended. Invariant: the facts of
// a unit are in one batch: after a crash, either all exist or none. Invariant: no segment is
// removed before everything that replaces it is on disk. Invariant: after a failure durable() never
// moves again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "facts/fact_log.h"
#include "facts/owned_fact.h"
#include "journal/appender.h"
#include "journal/closed_files.h"
#include "journal/committer.h"
#include "journal/compactor.h"
#include "journal/context.h"
#include "journal/deadline_rewriter.h"
#include "journal/preallocator.h"
#include "journal/recovery.h"
#include "journal/segment_closer.h"
#include "journal/segment_liveness.h"
#include "journal/segment_remover.h"
#include "journal/space.h"
#include "journal/storage.h"
#include "journal/syncer.h"

namespace tubed::journal {

class Journal final : public FactLog {
 public:
  // Continues the log that `found` describes, after examine() and repair(). `storage` and `host`
  // outlive the journal. A storage operation still in progress when the journal is destroyed must
  // never complete.
  static Result<std::unique_ptr<Journal>> open(Storage& storage, JournalHost& host,
                                               const Options& options, Examined found);

  void set_options(const Options& options);

  // Sets the current wall clock. If it was stepped, new records are encoded with it, and older
  // deadlines are rewritten (DeadlineRewriter).
  void set_clock(const WallClock& clock);

  void fact(const Fact& fact) override;
  // Holds the facts of a unit until its end, when their size is known, and then makes room for them
  // in one batch. O(bytes of the unit).
  void begin_unit() override;
  void end_unit() override;
  bool has_room_for(std::size_t body_bytes) const override;
  // True if commands that write must wait until ticks alone have made room, or have brought the
  // files back within the promise of space (space.h, step 8).
  bool congested() const override;
  // True if a fact would take from the reserve, or too much waits to be written. Unlike
  // congested(), it waits for compaction only while the journal is full.
  bool overloaded() const;
  bool flush() override;
  Time next_deadline() const override;
  void close(std::function<void()> closed) override;

  LogStats stats() const override;
  std::uint64_t segment_of(JobId id) const override { return liveness_.segment_of(id); }

  // Makes the next facts, up to `bytes` bytes of records (record_bytes()), survive a crash together
  // or not at all. At least one must follow in the same tick. O(1).
  void make_room(std::uint64_t bytes);

  // Facts before this position were submitted to the disk.
  Lsn submitted() const { return committer_.submitted(); }
  // All facts before this position are on disk.
  Lsn synced() const { return syncer_.synced(); }

 private:
  Journal(Storage& storage, JournalHost& host, const Options& options, Examined found);

  void read_clock();
  bool prepare_commit(Time now);
  bool rewrite_deadlines();
  bool lacks_room() const;
  bool comes_second() const;
  bool frees_soon() const;
  void advance();
  void go_on_closing();
  bool all_is_synced();
  void publish();

  Context context_;
  SegmentLiveness liveness_;
  Preallocator preallocator_;
  ClosedFiles closed_files_;
  Space space_;
  SegmentCloser closer_;
  Syncer syncer_;
  Appender appender_;
  Committer committer_;
  Compactor compactor_;
  SegmentRemover remover_;
  DeadlineRewriter rewriter_;

  bool clock_is_read_ = false;  // in this tick
  bool in_unit_ = false;
  std::vector<OwnedFact> unit_;  // the facts of the open unit
  std::function<void()> closed_;
};

}  // namespace tubed::journal
