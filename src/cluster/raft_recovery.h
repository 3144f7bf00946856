// Recovery of the Raft log: reads its files from the oldest batch to the newest, and decides which
// batches count. The protocol:
//
//  1. List the directory. Files must be numbered without a gap; unfinished files are noted.
//  2. Read the files, oldest first. Each must have a valid header of this cluster, and the length
//     in its header, unless it ends with a batch because step 6 has cut it.
//  3. Take batches while they are whole and their numbers increase by 1. A batch replaces all
//     entries from its first index. A file ends where only zeros follow.
//  4. The log ends at anything else. Every batch is synced before the next is begun, so a crash can
//     only have torn the last batch. It is damage if anything of a later batch is found: the whole
//     header of another batch in the rest of the file, or a byte in a later file.
//  5. Without such evidence it is a torn tail, and nothing in it was ever reported as stored.
//  6. repair_raft_log() makes the directory agree: unfinished files are removed, the torn tail is
//     cut, and everything that may not be durable is synced.
//
// examine_raft_log() takes steps 1 to 5 and changes nothing.
// docs/internals/raft-log-format.md: "What a crash may leave behind".
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/entry_places.h"
#include "cluster/types.h"
#include "journal/storage.h"

namespace tubed::cluster {

struct FoundRaftFile {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t used = 0;  // end of its last batch, or of its header
};

// A torn tail: nothing counts from this place.
struct RaftLogCut {
  std::uint64_t file = 0;
  std::uint64_t offset = 0;
  std::string reason;
};

struct FoundRaftLog {
  std::vector<FoundRaftFile> files;  // oldest first, without a gap
  std::size_t head = 0;              // index of the file with the last batch; no later file has one
  Index first = 1;                   // of the oldest entry, or of the next entry
  std::deque<Entry> entries;
  EntryPlaces places;
  std::uint64_t next_batch = 1;
  bool sealed = true;  // the last batch has no entries, or no batch exists
  std::optional<RaftLogCut> cut;
  std::vector<std::string> leftovers;  // files that a crash left unfinished

  Index last() const { return first + entries.size() - 1; }
};

// Reads the whole log. The error names file and offset: damage, another version, another cluster,
// or a gap in the numbers. O(bytes); holds one file in memory, in addition to the entries.
Result<FoundRaftLog> examine_raft_log(journal::FileReader& storage, std::uint64_t cluster);

// Makes the directory agree with `found`, durably (step 6).
Result<void> repair_raft_log(journal::Storage& storage, FoundRaftLog& found);

}  // namespace tubed::cluster
