// Recovery: what a journal's directory holds, read from its oldest record to its newest.
//
// examine() changes nothing, so that tools can use it on any directory; repair() then removes the
// traces of a crash. Between damage and a crash's trace the log itself decides: a record that does
// not read is damage if a later batch says that it was on disk, or if the jobs that the log gives
// up to there are not as many as its last whole batch says; otherwise the log ends there.
// docs/journal-format.md: "What a crash may leave behind".
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

// Told of every record of every whole batch, in the order of the log.
class RecordSink {
 public:
  // `offset` and `bytes` are those of the record in its segment. What the record refers to is valid
  // during the call.
  virtual void record(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
                      const Record& record) = 0;
  // The same of an `Added` whose job is there already: compaction has copied it.
  virtual void copied(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
                      const Record& record) {
    this->record(segment, offset, bytes, record);
  }

 protected:
  ~RecordSink() = default;
};

struct FoundSegment {
  std::uint64_t sequence = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t used_bytes = 0;  // up to the end of its last whole batch; its header at least
};

// A torn tail: from `offset` of `segment` on, where a batch begins or could begin, nothing counts.
struct Cut {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
  std::string reason;
  std::uint64_t lost_batches = 0;  // whole batches behind it, which cannot be used without it
};

struct Examined {
  std::uint64_t directory = 0;         // the journal's identity; 0: there is no segment
  std::vector<FoundSegment> segments;  // oldest first, without a gap; the last ones may be unused
  std::size_t current = 0;             // index of the segment where the log ends
  Lsn next_lsn = 0;                    // of the next fact
  JobId next_job_id = 1;
  bool clean = false;  // the last thing written was an orderly stop
  std::optional<Cut> cut;
  std::vector<std::string> leftovers;  // files that a crash left unfinished
  std::uint64_t facts = 0;
  SegmentLiveness liveness;  // of all segments up to the one where the log ends
};

// How far reading has come: bytes read and bytes to read in all.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Reads the whole journal. The error names file and offset: damage, another version, a segment of
// another journal, a gap in the numbers. O(bytes); holds one segment in memory, and the bodies of
// one batch once more.
Result<Examined> examine(Storage& storage, const WallClock& clock, RecordSink& sink,
                         const Progress& progress);

// Makes the directory what `examined` says, durably: the tail is cut, what lies behind is removed,
// leftovers are removed, and what was read is on disk. On a full disk an unfinished file may stay,
// and zeros behind a segment's last batch, for the next start; `examined` then has the length.
Result<void> repair(Storage& storage, Examined& examined);

}  // namespace tubed::journal
