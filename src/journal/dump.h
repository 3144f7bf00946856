// Dump: a journal as text, for people and for scripts. It changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "journal/recovery.h"
#include "journal/storage.h"

namespace tubed::journal {

// Whether a job's body is printed, escaped, or only its length.
enum class Bodies : std::uint8_t { length, text };

// Prints one line for each record: its place, its kind, and its fields by the names of the
// protocol. Times are in UTC.
//   journal.0000000001:128 added id=1 tube="default" state=ready pri=0 delay=0 ttr=60 …
class RecordPrinter final : public RecordSink {
 public:
  // `clock` is the clock that the records were read with.
  RecordPrinter(const WallClock& clock, Bodies bodies, std::function<void(std::string_view)> print)
      : clock_(clock), bodies_(bodies), print_(std::move(print)) {}

  void record(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
              const Record& record) override;

 private:
  WallClock clock_;
  Bodies bodies_;
  std::function<void(std::string_view)> print_;
};

// Prints every record of every segment, oldest first. Prints a line for each range that cannot be
// decoded and continues after it. If a file cannot be read, prints that, continues with the next
// file, and returns the first such error. A server may write the journal meanwhile (live.h).
// O(bytes); holds one segment in memory.
Result<void> dump(FileReader& storage, const std::function<void(std::string_view)>& print,
                  Bodies bodies = Bodies::length);

// A summary of an examined journal, a few lines of text.
std::string describe(const Examined& examined);

// "2026-11-21T05:35:28.000000001Z", of nanoseconds since 1970.
std::string utc_text(std::int64_t wall);

}  // namespace tubed::journal
