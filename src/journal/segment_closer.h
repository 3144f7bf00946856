// SegmentCloser: closes the files of segments that the log has left.
//
// A file was allocated ahead of need, so unused space remains at its end. The file is trimmed to
// its records, which syncs it, and then closed, one file at a time, oldest first. While the journal
// is full the file keeps its length, because another process might take the freed space. No file
// becomes shorter than half a segment, so it can be reused when it is dead (SegmentRemover).
//
// Invariant: files are closed in log order, and a closed file is on disk. So every fact before
// synced() is on disk.
#pragma once

#include <cstdint>
#include <deque>

#include "journal/closed_files.h"
#include "journal/context.h"
#include "journal/preallocator.h"
#include "journal/segment_liveness.h"
#include "journal/space.h"

namespace tubed::journal {

class SegmentCloser {
 public:
  SegmentCloser(Context& context, const SegmentLiveness& liveness, Preallocator& preallocator,
                ClosedFiles& closed, const Space& space)
      : context_(context),
        liveness_(liveness),
        preallocator_(preallocator),
        closed_(closed),
        space_(space) {}

  // The head of the log has left a segment, which ends at position `end`.
  void end_segment(Lsn end) { ends_.push_back(end); }

  // Closes all segments before `segment` in the background, unless the Preallocator is growing.
  // Precondition: all their records are written, and no sync of their files is running.
  void close_before(std::uint64_t segment);

  // True if no file is being closed.
  bool idle() const { return closing_.empty(); }
  // True if the file of this segment is open and no older file is: after a sync of it, the log up
  // to its end is on disk.
  bool is_oldest_open(std::uint64_t segment) const;
  // True if the file was closed, by this or an earlier process.
  bool is_closed(std::uint64_t segment) const;

  // All facts before this position are on disk, because their files are closed.
  Lsn synced() const { return synced_; }

 private:
  struct Closing {
    Preallocator::OpenFile file;
    std::uint64_t used_bytes;
    Lsn end;
  };

  void close_next();
  void closed(const Outcome& outcome, std::uint64_t wanted_bytes);

  Context& context_;
  const SegmentLiveness& liveness_;
  Preallocator& preallocator_;
  ClosedFiles& closed_;
  const Space& space_;

  std::deque<Lsn> ends_;         // ends of the open segments before the head
  std::deque<Closing> closing_;  // oldest first
  bool trimming_ = false;        // the first of closing_
  Lsn synced_ = 0;
};

}  // namespace tubed::journal
