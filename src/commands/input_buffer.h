// InputBuffer: input of one conversation that it has not consumed yet. InputMemory counts it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "commands/input_memory.h"

namespace tubed::commands {

class InputBuffer {
 public:
  // `memory` outlives the buffer.
  explicit InputBuffer(InputMemory& memory) : memory_(memory) {}
  ~InputBuffer() { memory_.count(counted_, 0); }
  InputBuffer(const InputBuffer&) = delete;
  InputBuffer& operator=(const InputBuffer&) = delete;

  bool empty() const { return taken_ == bytes_.size(); }
  // Valid until the next change.
  std::string_view view() const { return std::string_view(bytes_).substr(taken_); }

  void append(std::string_view bytes) {
    bytes_.append(bytes);
    count();
  }

  // Removes the first `count` bytes of view(). Amortised O(count): the rest is moved only when it
  // is not longer than the bytes removed before it.
  void take(std::size_t count) {
    taken_ += count;
    if (taken_ >= bytes_.size() - taken_) {
      bytes_.erase(0, taken_);
      taken_ = 0;
      if (bytes_.capacity() > kKeptCapacity && bytes_.size() < bytes_.capacity() / 4) {
        bytes_.shrink_to_fit();
      }
    }
    this->count();
  }

 private:
  // A buffer up to this size is not shrunk.
  static constexpr std::size_t kKeptCapacity = 1024;

  void count() { counted_ = memory_.count(counted_, bytes_.capacity()); }

  InputMemory& memory_;
  std::size_t counted_ = 0;
  std::string bytes_;
  std::size_t taken_ = 0;
};

}  // namespace tubed::commands
