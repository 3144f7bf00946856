// ClosedFiles: the lengths of the files that the log has left, one per segment. Such a file ends
// with its last record, or has unused space after it if the disk was full. It owns no file.
#pragma once

#include <cstdint>
#include <map>

namespace tubed::journal {

class ClosedFiles {
 public:
  // Sets the length of a segment's file that is closed or being closed. O(log files).
  void set(std::uint64_t segment, std::uint64_t bytes) {
    std::uint64_t& known = files_[segment];
    bytes_ = bytes_ - known + bytes;
    known = bytes;
  }
  // Forgets a file that was removed. Precondition: it is known.
  void drop(std::uint64_t segment) { bytes_ -= files_.extract(segment).mapped(); }

  // Precondition: it is known.
  std::uint64_t bytes_of(std::uint64_t segment) const { return files_.at(segment); }
  // Returns the total length of all files. O(1).
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::map<std::uint64_t, std::uint64_t> files_;  // bytes by segment
  std::uint64_t bytes_ = 0;
};

}  // namespace tubed::journal
