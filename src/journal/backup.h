// Backup: copies a journal that a server may be writing meanwhile.
//
// The copy is a complete journal. It has every fact that was durable when the copy began, and some
// of those that became durable since. All files are opened before the first is read, so that
// compaction may remove them in the meantime.
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
// again. `copy`: the files of `to`, which are then read as recovery reads them; that finds damage
// that a copy alone does not, such as missing oldest segments. Null: the receiver of the files does
// that. O(bytes); holds one segment in memory, and while it verifies a few bytes for each job. The
// error names file and offset: damage that recovery would refuse, or with whole batches after it, a
// missing segment, or a directory that changes faster than it can be listed.
Result<BackupReport> back_up(FileReader& from, FileWriter& to, FileReader* copy);

}  // namespace tubed::journal
