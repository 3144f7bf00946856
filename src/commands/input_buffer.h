// InputBuffer: input of one conversation that it has not consumed yet.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tubed::commands {

class InputBuffer {
 public:
  bool empty() const { return taken_ == bytes_.size(); }
  // Valid until the next change.
  std::string_view view() const { return std::string_view(bytes_).substr(taken_); }
  // The capacity in bytes.
  std::size_t memory() const { return bytes_.capacity(); }

  void append(std::string_view bytes) { bytes_.append(bytes); }

  // Removes the first `count` bytes of view(). Amortised O(count): the rest is moved only when it
  // is not longer than the bytes removed before it.
  void take(std::size_t count) {
    taken_ += count;
    if (taken_ < bytes_.size() - taken_) return;
    bytes_.erase(0, taken_);
    taken_ = 0;
    if (bytes_.capacity() > kKeptCapacity && bytes_.size() < bytes_.capacity() / 4) {
      bytes_.shrink_to_fit();
    }
  }

 private:
  // A buffer up to this size is not shrunk.
  static constexpr std::size_t kKeptCapacity = 1024;

  std::string bytes_;
  std::size_t taken_ = 0;
};

}  // namespace tubed::commands
