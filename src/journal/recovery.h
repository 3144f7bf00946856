// Recovery: reads the journal's directory from the oldest record to the newest, and decides which
// records count. The protocol:
//
//  1. List the directory. Segments must be numbered without a gap; unfinished files are noted.
//  2. Read the segments, oldest first. Each must have a valid header with the same identity.
//  3. Take batches as long as they are whole and continue the positions of the log. Each record of
//     a whole batch goes to the RecordSink and to SegmentLiveness.
//  4. The log ends where bytes do not continue it. Later bytes are only searched for evidence: the
//     largest `durable` of any whole batch of this journal.
//  5. Damage or a torn tail? It is damage if that `durable` is beyond the end of the log: a fact
//     that was on disk is missing. It is also damage if the number of jobs differs from the number
//     in the last whole batch: records that replaced removed segments are missing. Otherwise it is
//     a torn tail, and cutting after the last whole batch loses nothing that was acknowledged.
//     After an orderly stop every changed fact counts as damage: the mark's `durable` covers all of
//     them. tubed 2.0.0 wrote its mark before the last sync, with a lower `durable`. Damage before
//     such a mark may result from a power cut, and is treated as a torn tail.
//  6. repair() makes the directory agree: the tail and the unusable later segments are kept in
//     other files (cut_files.h); unfinished files are removed, newest first; the tail is cut; and
//     everything that was read is synced, before a reply relies on it.
//
// examine() takes steps 1 to 5 and changes nothing, so tools can use it on any directory.
// docs/internals/journal-format.md: "What a crash may leave behind".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "journal/record.h"
#include "journal/segment.h"
#include "journal/segment_liveness.h"
#include "journal/storage.h"

namespace tubed::journal {

// Receives every record of every whole batch, in log order.
class RecordSink {
 public:
  // `offset` and `bytes` are the place and size of the record in its segment. Texts of the record
  // are valid during the call.
  virtual void record(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
                      const Record& record) = 0;
  // Receives an `Added` of an existing job: a copy made by compaction.
  virtual void copied(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
                      const Record& record) {
    this->record(segment, offset, bytes, record);
  }

 protected:
  ~RecordSink() = default;
};

// For callers that need only the result of examine().
class IgnoreRecords final : public RecordSink {
 public:
  void record(std::uint64_t /*segment*/, std::uint64_t /*offset*/, std::size_t /*bytes*/,
              const Record& /*record*/) override {}
};

struct FoundSegment {
  std::uint64_t sequence = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t used_bytes = 0;  // end of its last whole batch, or of its header
  SegmentHeader header;
};

// A torn tail: nothing counts from this place, where a batch begins or would begin.
struct Cut {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
  std::string reason;
  std::uint64_t lost_batches = 0;  // whole batches after the cut; unusable
  // The files in which repair() has kept the records after the cut: "cut.0000000003.*". Empty:
  // nothing was written there, or the disk has no room.
  std::string kept;
};

struct Examined {
  std::uint64_t directory = 0;         // the journal's identity; 0: no segment exists
  std::vector<FoundSegment> segments;  // oldest first, without a gap; the last may be unused
  std::size_t current = 0;             // index of the segment in which the log ends
  Lsn next_lsn = 0;                    // of the next fact
  JobId next_job_id = 1;
  bool clean = false;  // the log ends with an orderly stop
  std::optional<Cut> cut;
  std::vector<std::string> leftovers;  // files that a crash left unfinished
  std::uint64_t facts = 0;
  std::optional<Applied> applied;  // the newest position of a replicated log
  SegmentLiveness liveness;        // of all segments in the log
};

// Receives the progress of reading, in bytes.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Reads the whole journal. The error names file and offset: damage, an unknown version, a segment
// of another journal, a gap in the numbers. O(bytes); holds one segment in memory, and a second
// copy of the bodies of one batch.
Result<Examined> examine(FileReader& storage, const WallClock& clock, RecordSink& sink,
                         const Progress& progress);

// Makes the directory agree with `examined`, durably (step 6). On a full disk an unfinished file,
// and zeros after the last batch of a segment, may remain for the next start; `examined` then has
// the actual length.
Result<void> repair(Storage& storage, Examined& examined);

}  // namespace tubed::journal
