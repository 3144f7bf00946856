// Backup: copies a journal that a server may be writing meanwhile.
//
// The copy is a journal of its own: all that was durable when the copy began, and a part of what
// came since. Files are opened before they are read, so that compaction may remove them meanwhile.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "journal/record.h"
#include "journal/storage.h"

namespace tubed::journal {

struct BackupReport {
  std::uint64_t segments = 0;
  std::uint64_t bytes = 0;
  Lsn next_lsn = 0;  // the copy has all facts before this one
};

// From `from`, which may be read-only, into `to`, which is empty, and after an error is empty
// again. O(bytes); holds one segment in memory. The error names file and offset: damage that the
// log goes on after, a missing segment, or a directory that does not come to rest.
Result<BackupReport> back_up(Storage& from, Storage& to);

}  // namespace tubed::journal
