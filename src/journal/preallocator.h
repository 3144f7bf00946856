// Preallocator: the space that the log has before it: the files of the segments from the one being
// written on, and the growth of that space ahead of need, in the background.
//
// Durability: a file is in the directory, with its header and its place on the disk, before the
// first record goes into it.
#pragma once

#include <deque>
#include <functional>
#include <optional>

#include "journal/segment.h"
#include "journal/storage.h"

namespace tubed::journal {

// A place that the log has reached or needs to reach: a segment, and how far into it.
struct LogPlace {
  std::uint64_t segment = 0;
  std::uint64_t end = 0;
};

class Preallocator {
 public:
  struct Sizes {
    std::uint64_t segment_bytes = 0;  // how long a file grows, unless one record needs more
    std::uint64_t chunk_bytes = 0;    // how much it grows at a time, once it has half of that
  };

  Preallocator(Storage& storage, std::uint64_t directory)
      : storage_(storage), directory_(directory) {}

  void set_sizes(const Sizes& sizes) { sizes_ = sizes; }

  // A file that is there already; in the order of the log, without a gap.
  void adopt(std::uint64_t segment, FileId file, std::uint64_t bytes);

  // The file, if all up to `place.end` has its place on the disk. O(1).
  std::optional<FileId> file_for(const LogPlace& place) const;
  // How long the segment may become: it is not made longer if another follows, or if the disk had
  // no room for that. O(1).
  std::uint64_t limit_of(std::uint64_t segment) const;
  // Bytes that have their place on the disk behind `place`. O(files).
  std::uint64_t ahead_of(const LogPlace& place) const;
  // Of all its files.
  std::uint64_t bytes() const { return bytes_; }

  // What growth does next: makes room for `needed` if it has none, else the preallocator longer.
  struct Step {
    std::uint64_t segment = 0;
    bool create = false;
    std::uint64_t from = 0;
    std::uint64_t to = 0;
  };
  Step next_step(const LogPlace& needed) const;
  // Takes that step; `grown` is called when it has ended. Precondition: not growing.
  void grow(const Step& step, std::int64_t wall_time, std::function<void(const Outcome&)> grown);
  // The file of a segment that is dead becomes the next one, with `bytes` of its bytes; likewise.
  // That is for a full disk: neither it nor the one before is expected to become longer.
  void reuse(std::uint64_t dead, std::uint64_t bytes, std::int64_t wall_time,
             std::function<void(const Outcome&)> reused);
  bool growing() const { return growing_; }

  struct OpenFile {
    std::uint64_t segment;
    FileId file;
    std::uint64_t bytes;
  };
  bool empty() const { return files_.empty(); }
  // Precondition: not empty.
  std::uint64_t first_segment() const { return files_.front().segment; }
  // The log has left the first file: whoever gets it trims and closes it. Precondition: not
  // growing.
  OpenFile leave();

 private:
  std::string header_of(std::uint64_t segment, std::int64_t wall_time) const;
  // Its index in files_, or files_.size().
  std::size_t index_of(std::uint64_t segment) const;

  Storage& storage_;
  std::uint64_t directory_;
  Sizes sizes_;
  std::deque<OpenFile> files_;
  std::uint64_t last_segment_ = 0;  // the newest that was ever there
  std::uint64_t bytes_ = 0;
  bool growing_ = false;
  bool last_is_stuck_ = false;  // the disk had no room to make the last file longer
};

}  // namespace tubed::journal
