// Salvage: makes a new journal of all records of a damaged journal that can be read. The damaged
// journal is not changed.
//
// Records after damage are copied: a job done twice is better than a job lost. So a job whose
// `Removed` was lost is back, and a job whose `Added` was lost is lost. Other records of such a job
// have no effect.
//
// Last come the files that keep what recovery has cut (cut_files.h). Only jobs that were added
// there are taken from them, with what befell them there: other records may contradict what the
// server has done since. A job that the journal has as well is skipped, and a job whose id another
// job has by now gets a new id. docs/journal-format.md: "Salvage"
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

// The identity of the journal that the segment is of, by its header or by its first whole batch.
std::optional<std::uint64_t> identity_of(std::string_view image, std::uint64_t sequence);

// Passes every whole record of the segment to `sink` and the ranges between them to `lost`, in
// order of place. After damage it continues at the next whole batch of the journal `directory`. The
// header of the segment is ignored. O(bytes).
void read_around_damage(std::string_view image, std::uint64_t sequence, std::uint64_t directory,
                        const WallClock& clock, RecordSink& sink,
                        const std::function<void(const LostRange&)>& lost);

// --- The whole journal

struct SalvageReport {
  struct Lost {
    std::string file;
    LostRange range;
  };
  struct Missing {  // segments, both included
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  std::uint64_t segments = 0;  // of which something was read
  std::uint64_t facts = 0;     // copied
  std::vector<Lost> lost;
  std::vector<Missing> missing;
  // By the positions in the headers of the batches that follow. Losses after the last batch are not
  // known.
  std::uint64_t lost_facts = 0;
  std::uint64_t cut_jobs = 0;  // of cut files

  bool complete() const { return lost.empty() && missing.empty() && lost_facts == 0; }
};

// Copies the readable records of `from`, oldest first, and finishes `into`, which has the same
// clock. Prints each loss when it is found, and a summary at the end. The error names the file: a
// segment of another version, or one that cannot be written; or says that there is no segment.
// O(bytes), twice; holds one segment of each in memory.
Result<SalvageReport> salvage(FileReader& from, LogCopy& into, const WallClock& clock,
                              const PrintLine& print);

}  // namespace tubed::journal
