// IncomingBody: the body of a command while it arrives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/bytes.h"

namespace tubed::commands {

class IncomingBody {
 public:
  // `left` bytes are to arrive, and are stored in `bytes`, which has that size. Null: they are
  // ignored, and `refusal`, if it is not empty, is the reply at their end.
  void begin(Bytes&& bytes, std::uint64_t left, std::string_view refusal) {
    bytes_ = std::move(bytes);
    left_ = left;
    refusal_ = refusal;
  }

  bool is_stored() const { return static_cast<bool>(bytes_); }
  // How many bytes have not arrived.
  std::uint64_t left() const { return left_; }
  std::string_view refusal() const { return refusal_; }

  // The memory for the bytes that are to arrive. Precondition: is_stored().
  std::span<char> space() { return bytes_.writable().last(left_); }
  // The first `count` bytes of space() were written.
  void received(std::size_t count) { left_ -= count; }
  // Takes the front of `input` and returns the number of bytes taken.
  std::size_t take(std::string_view input) {
    const std::size_t count = std::min<std::size_t>(input.size(), left_);
    if (count > 0 && bytes_) std::memcpy(space().data(), input.data(), count);
    left_ -= count;
    return count;
  }

  // The stored bytes, for the caller to move away. Nothing further is stored.
  Bytes&& release() { return std::move(bytes_); }
  // Frees the memory. The rest is ignored, and `refusal` is the reply.
  void refuse(std::string_view refusal) {
    bytes_ = Bytes();
    refusal_ = refusal;
  }

 private:
  Bytes bytes_;
  std::uint64_t left_ = 0;
  std::string_view refusal_;
};

}  // namespace tubed::commands
