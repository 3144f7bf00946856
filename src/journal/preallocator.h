// Preallocator: the open files of the log, from the segment being written to the last segment
// created ahead of need, and their growth in the background.
//
// A segment file is created with half its size and then grows in chunks, so little space is set
// aside while few jobs are live. It is never created shorter, because a shorter file could not be
// reused when it is dead. Only one step of growth runs at a time. This class decides how the files
// grow next, Space decides when.
//
// It owns its open files. The log leaves them oldest first: take_first().
//
// Durability: before the first record is written to a file, the file is in the directory, has its
// header, and its bytes are allocated.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "journal/segment.h"
#include "journal/segment_liveness.h"
#include "journal/storage.h"

namespace tubed::journal {

class Preallocator {
 public:
  struct Sizes {
    std::uint64_t segment_bytes = 0;  // of a complete file, unless a record needs more
    std::uint64_t chunk_bytes = 0;    // of a step of growth after the first
  };

  Preallocator(Storage& storage, std::uint64_t directory)
      : storage_(storage), directory_(directory) {}

  void set_sizes(const Sizes& sizes) { sizes_ = sizes; }

  // Adds an existing file. Segments are adopted in log order, without a gap.
  void adopt(const SegmentHeader& header, FileId file, std::uint64_t bytes);

  // Returns the file of the segment if it is allocated up to `place.end`. O(1).
  std::optional<FileId> file_for(const LogPlace& place) const;
  // Returns how far the segment can be used. A file no longer grows if another file follows it or
  // the disk has refused to grow it. O(1).
  std::uint64_t limit_of(std::uint64_t segment) const;
  // Returns how many bytes are allocated after `place`, in its segment and in later segments.
  // O(files).
  std::uint64_t bytes_beyond(const LogPlace& place) const;
  // Returns the total bytes of its files.
  std::uint64_t bytes() const { return bytes_; }

  struct Step {
    std::uint64_t segment = 0;
    bool create = false;
    std::uint64_t from = 0;
    std::uint64_t to = 0;
  };
  // Returns how the files grow next: up to `needed` if they do not reach it, otherwise further
  // ahead.
  Step next_step(const LogPlace& needed) const;
  // Takes that step and calls `grown` at its end. Precondition: not growing.
  void grow(const Step& step, std::int64_t wall_time, std::function<void(const Outcome&)> grown);
  // As a step of growth, reuses the file of a dead segment as the next segment, with `bytes` bytes,
  // and calls `reused`. For a full disk: neither this file nor its predecessor grows any further.
  // Precondition: not growing.
  void reuse(std::uint64_t dead, std::uint64_t bytes, std::int64_t wall_time,
             std::function<void(const Outcome&)> reused);
  bool growing() const { return growing_; }

  // Returns the version of the format in the segment's header. Precondition: its file is here.
  std::uint32_t version_of(std::uint64_t segment) const {
    return files_[index_of(segment)].header.version;
  }
  // Writes the segment's header with this version or a higher version, and calls `raised`.
  // Precondition: its file is here and stays until then.
  void raise_version(std::uint64_t segment, std::uint32_t version, Sync sync,
                     std::function<void(const Outcome&)> raised);

  struct OpenFile {
    std::uint64_t segment;
    FileId file;
    std::uint64_t bytes;
    SegmentHeader header;
  };
  bool empty() const { return files_.empty(); }
  // Precondition: not empty.
  std::uint64_t first_segment() const { return files_.front().segment; }
  // Hands over the first file, which the log has left, to be closed by the caller. Precondition:
  // not growing.
  OpenFile take_first();

 private:
  SegmentHeader header_of(std::uint64_t segment, std::int64_t wall_time) const;
  // Returns the index in files_, or files_.size() if the segment has no file here.
  std::size_t index_of(std::uint64_t segment) const;

  Storage& storage_;
  std::uint64_t directory_;
  Sizes sizes_;
  std::deque<OpenFile> files_;
  std::uint64_t last_segment_ = 0;  // the newest segment that ever had a file
  std::uint64_t bytes_ = 0;
  bool growing_ = false;
  std::string raised_header_;  // while raise_version() writes it
  bool last_stays_ = false;    // the last file no longer grows
};

}  // namespace tubed::journal
