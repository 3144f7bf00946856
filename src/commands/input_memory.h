// InputMemory: the bytes of input that conversations store, and what the next read may bring.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tubed::commands {

class InputMemory {
 public:
  void set_bound(std::uint64_t bytes) { bound_ = bytes; }

  // Returns how many of `wanted` bytes the next read may bring. It is fewer if many clients wait,
  // because each may do only `quantum` work, and fewer as the stored input approaches the bound;
  // above the bound it is kLeastReadBytes. A conversation stores at most the input of one read and
  // an unfinished line, so the bound plus kLeastReadBytes for each connection limits the stored
  // input of all conversations.
  std::size_t read_bytes(std::size_t wanted, std::uint64_t quantum) const {
    const std::uint64_t room = bound_ > bytes_ ? bound_ - bytes_ : 0;
    const std::uint64_t share = std::min(room / kReadShare, quantum * kReadBytesPerWork);
    return wanted <= share ? wanted
                           : std::min<std::size_t>(wanted, std::max(share, kLeastReadBytes));
  }

  // The memory of the stored input of all conversations, in bytes.
  std::uint64_t bytes() const { return bytes_; }
  // The stored input of a conversation changed from `before` to `now` bytes. Returns `now`.
  std::size_t count(std::size_t before, std::size_t now) {
    bytes_ += now - before;
    return now;
  }

 private:
  static constexpr std::uint64_t kLeastReadBytes = 2048;
  // One read may bring this fraction of the room below the bound at most.
  static constexpr std::uint64_t kReadShare = 64;
  // Most commands are shorter.
  static constexpr std::uint64_t kReadBytesPerWork = 256;

  std::uint64_t bound_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace tubed::commands
