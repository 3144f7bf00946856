// Backup: copies a journal that a server may be writing.
//
// The copy is a complete journal. It has every fact that was durable when the copy began, and some
// of the facts that became durable afterwards. All files are opened before the first is read, so
// compaction may remove them meanwhile.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "journal/record.h"
#include "journal/storage.h"

namespace tubed::journal {

struct BackupReport {
  std::uint64_t segments = 0;
  std::uint64_t bytes = 0;
  Lsn next_lsn = 0;  // the copy has the facts before this position
};

// Copies `from`, which may be read-only, to `to`, which must be empty. After an error `to` is empty
// again. `copy` reads the files of `to` as recovery does. That finds damage that copying cannot,
// such as missing oldest segments. Null: the receiver of the files checks them. O(bytes); holds one
// segment in memory, and during verification a few bytes per job. The error names file and offset:
// damage that recovery would refuse or that whole batches follow, a missing segment, or a directory
// that changes faster than it can be listed.
Result<BackupReport> back_up(FileReader& from, FileWriter& to, FileReader* copy);

}  // namespace tubed::journal
