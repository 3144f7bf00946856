// Salvage: makes a new journal of all that still reads of a damaged one, which stays as it is.
//
// What stands behind damage is kept: a job done twice is better than a job lost. So a job whose
// removal was lost is back, and a job whose `Added` was lost is gone; what else is told of it does
// no harm. docs/journal-format.md: "Salvage"
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

// Told of one line, without its end.
using PrintLine = std::function<void(std::string_view line)>;

// --- One segment

// What does not read.
struct LostRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;  // behind its last byte
  std::string reason;
};

// The identity of the journal that the segment is of, by its header or by its first whole batch.
std::optional<std::uint64_t> identity_of(std::string_view image, std::uint64_t sequence);

// Tells `sink` every whole record of the segment and `lost` what lies between them, in order of
// place. Behind damage it goes on at the next whole batch of the journal `directory`. The segment's
// header is not looked at. O(bytes).
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
  // By the numbers of the batches behind them. Behind the last batch nothing tells.
  std::uint64_t lost_facts = 0;

  bool complete() const { return lost.empty() && missing.empty() && lost_facts == 0; }
};

// Copies what reads of `from`, oldest first, and finishes `into`, which has the same clock. Each
// loss is printed when it is met, and what came of it all at the end. The error names the file: a
// segment of another version, or one that cannot be written; or says that there is no segment.
// O(bytes), twice; holds one segment of each in memory.
Result<SalvageReport> salvage(Storage& from, LogCopy& into, const WallClock& clock,
                              const PrintLine& print);

}  // namespace tubed::journal
