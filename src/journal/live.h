// Reads a journal that a server may be writing, for `--check` and `--dump`. Changes nothing.
//
// While files are read one after the other, the server writes, creates, removes and reuses
// segments.
//
//  1. All files are opened before the first is read, so a removed segment can still be read.
//  2. A segment is read before the log leaves it, and the next segment after that: then facts seem
//     to be missing in between. Another read of the same files finds them.
//  3. On a full disk the file of a dead segment is reused for another segment. Its old name has
//     then disappeared, and the files are opened again.
//
// Therefore damage counts only if two reads agree and the segments have not changed, or if several
// reads agree.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "journal/recovery.h"
#include "journal/storage.h"

namespace tubed::journal {

// The segments of a directory, opened together.
class OpenSegments {
 public:
  struct Segment {
    std::uint64_t sequence = 0;
    std::uint64_t bytes = 0;  // when the directory was listed
    std::optional<FileId> file;
    Error error;  // why it could not be opened

    Result<FileId> opened() const { return file ? Result<FileId>(*file) : error; }
  };

  explicit OpenSegments(FileReader& storage) : storage_(storage) {}
  ~OpenSegments();

  // Lists the directory and opens all segments, oldest first; repeats that if segments were removed
  // meanwhile. Fails if they change too fast or the directory cannot be listed.
  Result<void> open();

  const std::vector<Segment>& segments() const { return segments_; }
  // Other regular files of the directory.
  const std::vector<FileInfo>& others() const { return others_; }
  // True if the names of the segments differ from those that were opened.
  Result<bool> changed() const;
  Result<bool> has_lost(std::uint64_t sequence) const;

 private:
  Result<void> list();
  void close();

  FileReader& storage_;
  std::vector<Segment> segments_;
  std::vector<FileInfo> others_;
};

// examine() for a directory that a server may be using. A torn tail that moves between two reads is
// being written by the server, and is left out. Returns the error of examine(), or another error if
// many attempts found different results.
Result<Examined> examine_live(FileReader& storage, const WallClock& clock);

}  // namespace tubed::journal
