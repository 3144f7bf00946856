// Import: converts the binlogs of a beanstalkd to a journal, at the first start in their directory.
//
// It owns the directory while it works, and blocks. The binlogs are never changed: at the end, each
// binlog.N is moved to imported/binlog.N.
//
// Durability: markers record the progress of an import, so it can be interrupted anywhere.
//   1. "import.begun" is stored: segments now belong to the import and are not yet a journal.
//   2. The journal is written and durable.
//   3. The marker is renamed to "import.done" in one step: the journal now counts.
//   4. Each binlog is moved to imported/.
//   5. The marker is removed.
// A start that finds import.begun removes all segments and continues with step 2; a start that
// finds import.done continues with step 4. If step 2 fails, the import removes its segments and
// then its marker, as far as possible.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/copy.h"
#include "journal/recovery.h"
#include "journal/storage.h"

namespace tubed::journal {

inline constexpr std::string_view kImportBegun = "import.begun";
inline constexpr std::string_view kImportDone = "import.done";

struct ImportReport {
  std::uint64_t files = 0;
  std::uint64_t records = 0;
  // Jobs at the end of the import.
  std::uint64_t ready = 0;
  std::uint64_t delayed = 0;
  std::uint64_t buried = 0;
  // One line per file with a torn end: "binlog.3 ends at byte 712 of 4096: …".
  std::vector<std::string> torn;
};

// Receives one line for the operator.
using ImportLog = std::function<void(const std::string&)>;

// Returns nothing if the directory has no binlogs. `progress` may be empty. The segments that
// LogCopy writes follow `settings`.
//
// The numbers of the files may begin anywhere, because beanstalkd removes the oldest files. A gap
// in the numbers is an error: without the missing file, jobs would be lost or reappear unnoticed.
// The operator can accept that by putting an empty file in its place. Other errors are binlogs next
// to a journal, and content that BinlogReader rejects. Each error is one line that names the file.
// O(bytes of the binlogs); holds one binlog in memory, and the id and state of every job.
Result<std::optional<ImportReport>> import_binlogs(Storage& storage,
                                                   const LogCopy::Settings& settings,
                                                   const ImportLog& log, const Progress& progress);

}  // namespace tubed::journal
