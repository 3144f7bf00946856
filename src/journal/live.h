// Reads a journal that a server may be writing, and changes nothing. For `--check` and `--dump`.
//
// While files are read one after the other, the server writes, creates, removes and reuses
// segments.
//
//  1. All files are opened before the first is read, so that a removed segment is still read.
//  2. A segment is read before the log leaves it, and the next segment after that: then facts seem
//  to
//     be missing in between. Another read of the same files finds them.
//  3. On a full disk the file of a dead segment becomes another segment. Its name has disappeared
//     then, and the files are opened again.
//
// So damage is believed only if two reads agree and the segments are the same as before, or if
// several reads agree.
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

  // Lists the directory and opens all segments, oldest first. If segments were removed meanwhile,
  // it does so again. The error says that they change too fast, or why the directory cannot be
  // listed.
  Result<void> open();

  const std::vector<Segment>& segments() const { return segments_; }
  // Other regular files of the directory.
  const std::vector<FileInfo>& others() const { return others_; }
  // The names of the segments are no longer those that were opened.
  Result<bool> changed() const;
  Result<bool> has_lost(std::uint64_t sequence) const;

 private:
  Result<void> list();
  void close();

  FileReader& storage_;
  std::vector<Segment> segments_;
  std::vector<FileInfo> others_;
};

// examine(), for a directory that a server may be using. A torn tail that moves between two reads
// is the write of a server at work, and is left out. The error of examine(), or, after many
// attempts that found different things, an error that says so.
Result<Examined> examine_live(FileReader& storage, const WallClock& clock);

}  // namespace tubed::journal
