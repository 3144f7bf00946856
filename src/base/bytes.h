// Bytes: an immutable, reference-counted run of bytes, a job's body.
//
// Owned by everyone who holds a copy of the handle, so that deleting a job never races a reply
// that still carries its body. Written once, between allocate() and the first copy. The count is
// not atomic: one Bytes and all its copies stay on one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/assert.h"

namespace tubed {

class Bytes {
 public:
  Bytes() = default;
  Bytes(const Bytes& other) : block_(other.block_) {
    if (block_ != nullptr) ++block_->references;
  }
  Bytes(Bytes&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Bytes& operator=(Bytes other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Bytes() {
    if (block_ != nullptr && --block_->references == 0) release(block_);
  }

  // `size` uninitialised bytes, or an empty handle (operator bool is false) if there is no memory.
  static Bytes allocate(std::uint32_t size);

  // A copy of `text`. Without memory the process ends as it does everywhere (the new-handler).
  static Bytes copy_of(std::string_view text);

  // False for a default-constructed handle; a body of no bytes is true.
  explicit operator bool() const { return block_ != nullptr; }

  std::uint32_t size() const { return block_ == nullptr ? 0 : block_->size; }
  std::string_view view() const { return {block_ == nullptr ? "" : block_->data(), size()}; }

  // To fill it in. Precondition: this is the only handle.
  std::span<char> writable() {
    TUBED_ASSERT(block_ != nullptr && block_->references == 1);
    return {block_->data(), block_->size};
  }

 private:
  struct Block {
    std::uint32_t references;
    std::uint32_t size;
    char* data() { return reinterpret_cast<char*>(this + 1); }
  };

  static void release(Block* block);

  Block* block_ = nullptr;
};

}  // namespace tubed
