// Salvage: makes a new journal of all readable records of a damaged journal, which is not changed.
//
// Records after damage are copied as well: doing a job twice is better than losing it. So a job
// whose `Removed` was lost reappears. A job whose `Added` was lost is lost, and its other records
// have no effect.
//
// The files that keep what recovery has cut (cut_files.h) are read last. Only jobs that were added
// in them are copied, with their later changes in these files: other records may contradict what
// the server has done since. A job that the journal also has is skipped, and a job whose id now
// belongs to another job gets a new id. docs/internals/journal-format.md: "Salvage"
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "journal/copy.h"
#include "journal/recovery.h"
#include "journal/storage.h"

namespace tubed::journal {

// Receives one line, without its line feed.
using PrintLine = std::function<void(std::string_view line)>;

// --- One segment

// A range of a segment that cannot be decoded.
struct LostRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;  // after its last byte
  std::string reason;
};

// Returns the identity of the segment's journal, from its header or its first whole batch.
std::optional<std::uint64_t> identity_of(std::string_view image, std::uint64_t sequence);

// Passes every whole record of the segment to `sink`, and the ranges between them to `lost`, in
// order. Continues after damage at the next whole batch of the journal `directory`. Ignores the
// header of the segment. O(bytes).
void read_around_damage(std::string_view image, std::uint64_t sequence, std::uint64_t directory,
                        const WallClock& clock, RecordSink& sink,
                        const std::function<void(const LostRange&)>& lost);

// --- The whole journal

struct SalvageReport {
  struct Lost {
    std::string file;
    LostRange range;
  };
  struct Missing {  // segments, inclusive
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  std::uint64_t segments = 0;  // from which something was read
  std::uint64_t facts = 0;     // copied
  std::vector<Lost> lost;
  std::vector<Missing> missing;
  // From the positions in later batch headers. Losses after the last batch are not known.
  std::uint64_t lost_facts = 0;
  std::uint64_t cut_jobs = 0;  // from cut files

  bool complete() const { return lost.empty() && missing.empty() && lost_facts == 0; }
};

// Copies the readable records of `from`, oldest first, and finishes `into`, which has the same
// clock. Prints each loss when it is found, and a summary at the end. The error names the file: a
// segment of an unknown version, or a file that cannot be written; or says that no segment exists.
// O(bytes), twice; holds one segment of each journal in memory.
Result<SalvageReport> salvage(FileReader& from, LogCopy& into, const WallClock& clock,
                              const PrintLine& print);

}  // namespace tubed::journal
