// ClosedFiles: how long the files are that the log has left, one for each segment. Such a file ends
// with its last record, or has unused space after it where the disk was full. It owns no file.
#pragma once

#include <cstdint>
#include <map>

namespace tubed::journal {

class ClosedFiles {
 public:
  // The segment's file is closed, or being closed, and has this length. O(log files).
  void set(std::uint64_t segment, std::uint64_t bytes) {
    std::uint64_t& known = files_[segment];
    bytes_ = bytes_ - known + bytes;
    known = bytes;
  }
  // The file was removed. Precondition: it is known.
  void drop(std::uint64_t segment) { bytes_ -= files_.extract(segment).mapped(); }

  // Precondition: it is known.
  std::uint64_t bytes_of(std::uint64_t segment) const { return files_.at(segment); }
  // Of all files together. O(1).
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::map<std::uint64_t, std::uint64_t> files_;  // bytes by segment
  std::uint64_t bytes_ = 0;
};

}  // namespace tubed::journal
