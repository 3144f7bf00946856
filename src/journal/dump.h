// Dump: a journal as text, for people and scripts. It changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "journal/recovery.h"
#include "journal/storage.h"

namespace tubed::journal {

// Whether to print a job's body, escaped, or only its length.
enum class Bodies : std::uint8_t { length, text };

// Prints one line per record: its place, its kind, and its fields with the protocol's names. Times
// are in UTC.
//   journal.0000000001:128 added id=1 tube="default" state=ready pri=0 delay=0 ttr=60 …
class RecordPrinter final : public RecordSink {
 public:
  // `clock` is the clock that was used to read the records.
  RecordPrinter(const WallClock& clock, Bodies bodies, std::function<void(std::string_view)> print)
      : clock_(clock), bodies_(bodies), print_(std::move(print)) {}

  void record(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
              const Record& record) override;

 private:
  WallClock clock_;
  Bodies bodies_;
  std::function<void(std::string_view)> print_;
};

// Prints every record of every segment, oldest first. For a range that cannot be decoded, prints a
// line and continues after it. If a file cannot be read, prints that, continues with the next file,
// and returns the first such error. A server may be writing the journal (live.h). O(bytes); holds
// one segment in memory.
Result<void> dump(FileReader& storage, const std::function<void(std::string_view)>& print,
                  Bodies bodies = Bodies::length);

// Returns a summary of an examined journal, a few lines of text.
std::string describe(const Examined& examined);

// Formats nanoseconds since 1970 as "2026-11-21T05:35:28.000000001Z".
std::string utc_text(std::int64_t wall);

}  // namespace tubed::journal
