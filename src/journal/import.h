// Import: the binlogs of a beanstalkd become a journal, at the first start in their directory.
//
// It owns the directory while it works, and blocks. The binlogs are never changed: each binlog.N
// is moved to imported/binlog.N in the end.
//
// Durability: markers record the progress of an import, so that it can be interrupted anywhere.
//   1. "import.begun" is stored: segments from here on are the import's own and not yet a journal.
//   2. The journal is written and durable.
//   3. The marker becomes "import.done", in one move: from here on the journal counts.
//   4. Each binlog is moved to imported/.
//   5. The marker is removed.
// A start that finds import.begun removes all segments and goes on with 2; a start that finds
// import.done goes on with 4. An import that fails in 2 takes its segments and then its marker
// back, as far as it can.
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
  // One line for each file whose end was torn: "binlog.3 ends at byte 712 of 4096: …".
  std::vector<std::string> torn;
};

// Takes one line for the operator.
using ImportLog = std::function<void(const std::string&)>;

// Returns nothing if the directory has no binlogs. `progress` may be empty. The segments that
// LogCopy writes follow `settings`.
//
// The numbers of the files may begin anywhere, because beanstalkd removes the oldest files. A gap
// between them is an error: without the missing file, jobs would be lost or come back unnoticed.
// The operator accepts that by putting an empty file in its place. Other errors: binlogs beside a
// journal, and content that BinlogReader rejects. Each error is one line that names the file.
// O(bytes of the binlogs); holds one binlog in memory, and every job's id and state.
Result<std::optional<ImportReport>> import_binlogs(Storage& storage,
                                                   const LogCopy::Settings& settings,
                                                   const ImportLog& log, const Progress& progress);

}  // namespace tubed::journal
