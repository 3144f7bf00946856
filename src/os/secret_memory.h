// SecretMemory: pages for keys, excluded from core dumps. [madvise(2)]
//
// The destructor overwrites the bytes.
#pragma once

#include <cstddef>
#include <span>

namespace tubed::os {

class SecretMemory {
 public:
  // Allocates `bytes` bytes, rounded up to whole pages and set to zero. Ends the process if memory
  // is exhausted, as `new` does.
  explicit SecretMemory(std::size_t bytes);
  ~SecretMemory();
  SecretMemory(const SecretMemory&) = delete;
  SecretMemory& operator=(const SecretMemory&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace tubed::os
