// Committer: writes the pending batches to disk and moves the positions of the log. The protocol:
//
//  1. During a tick the Appender encodes facts into pending batches.
//  2. At the end of the tick, if no commit is in flight and CommitDelay does not postpone it, all
//     pending batches become the commit in flight. submitted() moves to the end of the log.
//  3. A batch is written when its file is allocated up to the batch's end. Until then the commit is
//     starved: Space grows the files, and the batch is retried.
//  4. The header of the batch gets `durable` = Syncer::synced(), and the batch is written. With
//     `always` the write also syncs. If a record of the batch needs a higher version of the format
//     than the segment's header names, that header is written first, and synced if the batch is.
//     The next batch follows when the write has ended: the disk has only one write of the journal
//     at a time.
//  5. A write for which the disk has no room is repeated unchanged, every second, until it
//     succeeds. Any other failed write and every failed sync end the journal (law L5).
//  6. When a batch is written, Syncer::written() moves to its end, and after a synced write so does
//     synced(). confirmed() moves to the `durable` of its header. Segments that the log has left
//     are closed.
//  7. When the last batch is written, durable() moves to submitted(): replies that waited for these
//     facts may be sent.
//
// While a commit is in flight, facts collect for the next commit: this is group commit.
//
// Invariant: confirmed() <= synced() <= written(), and durable() <= submitted().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/histogram.h"
#include "journal/appender.h"
#include "journal/commit_delay.h"
#include "journal/context.h"
#include "journal/preallocator.h"
#include "journal/segment_closer.h"
#include "journal/segment_liveness.h"
#include "journal/space.h"
#include "journal/syncer.h"

namespace tubed::journal {

struct CommitStats {
  std::uint64_t commits = 0;
  ShortTimes times;  // from the first write to the end
  Counts facts;      // of one commit
};

class Committer {
 public:
  Committer(Context& context, const SegmentLiveness& liveness, Preallocator& preallocator,
            Space& space, SegmentCloser& closer, Syncer& syncer, Appender& appender)
      : context_(context),
        liveness_(liveness),
        preallocator_(preallocator),
        space_(space),
        closer_(closer),
        syncer_(syncer),
        appender_(appender),
        submitted_(appender.appended()),
        durable_(appender.appended()) {}

  // The mode has become `always`: older facts are synced before any new fact becomes durable.
  void sync_older_first() { catching_up_ = true; }

  // True if the pending batches should wait for more facts. Called once per tick, while batches are
  // pending and no commit is in flight.
  bool waits(Time now);
  // Step 2. Preconditions: batches are pending, and no commit is in flight.
  void begin();
  // Repeats the write that the disk has refused. Precondition: a write was refused.
  void retry_write() { write(); }
  // Called when files, syncs or space have changed: closes what can be closed, and writes a batch
  // that is no longer starved.
  void go_on();

  bool in_flight() const { return !flight_.batches.empty(); }
  bool starved() const { return flight_.starved; }
  // Returns how far a starved commit needs its file to reach.
  std::optional<LogPlace> starved_at() const;
  // True if a batch with the mark of an orderly stop was written.
  bool mark_written() const { return mark_written_; }

  // Facts before this position were submitted to the disk.
  Lsn submitted() const { return submitted_; }
  // Facts before this position are as durable as the mode requires.
  Lsn durable() const { return durable_; }
  // The header of a written batch says that all facts before this position are on disk.
  Lsn confirmed() const { return confirmed_; }

  const CommitStats& stats() const { return stats_; }

 private:
  struct Flight {
    std::vector<CommitBatch> batches;  // empty: no commit is in flight
    std::size_t next = 0;              // index of the batch being written or to be written next
    bool starved = false;              // the next batch cannot be written yet
    bool synced = false;               // the write is synced
    std::uint64_t facts = 0;           // in all batches
    Time began;                        // when the first write began
  };

  void write();
  void write_batch(FileId file);
  void version_raised(const Outcome& outcome);
  void batch_written(const Outcome& outcome);
  void end();
  void close_segments();

  Context& context_;
  const SegmentLiveness& liveness_;
  Preallocator& preallocator_;
  Space& space_;
  SegmentCloser& closer_;
  Syncer& syncer_;
  Appender& appender_;

  Flight flight_;
  CommitDelay delay_;
  Lsn submitted_;
  Lsn durable_;
  Lsn confirmed_ = 0;
  bool catching_up_ = false;
  bool mark_written_ = false;
  CommitStats stats_;
};

}  // namespace tubed::journal
