// SecretMemory: a page for keys, which no core dump of the process contains. [madvise(2)]
//
// Ends with its bytes overwritten.
#pragma once

#include <cstddef>
#include <span>

namespace tubed::os {

class SecretMemory {
 public:
  // `bytes`: rounded up to whole pages; they are zero. Out of memory ends the process, as it does
  // in `new`.
  explicit SecretMemory(std::size_t bytes);
  ~SecretMemory();
  SecretMemory(const SecretMemory&) = delete;
  SecretMemory& operator=(const SecretMemory&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace tubed::os
