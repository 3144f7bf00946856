// Bytes: an immutable, reference-counted run of bytes, such as a job's body.
//
// Copies of the handle share ownership: a reply may still refer to the body of a job that has been
// deleted. The bytes are written once, between allocate() and the first copy. The count is not
// atomic: a Bytes and all its copies belong to one thread. Small bodies are in the slab pool of the
// loop's thread (base/slab_pool.h); any other thread that uses Bytes, such as a reader of a
// journal, needs a BytesOnHeap.
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
  // Most handles are empty when they are destroyed.
  [[gnu::always_inline]] ~Bytes() {
    if (block_ != nullptr && --block_->references == 0) release(block_);
  }

  // Returns `size` uninitialised bytes, or an empty handle (operator bool is false) if memory is
  // exhausted.
  static Bytes allocate(std::uint32_t size);

  // Returns a copy of `text`. Ends the process through the new-handler if memory is exhausted.
  static Bytes copy_of(std::string_view text);

  // False for a default-constructed handle; true for an empty body.
  explicit operator bool() const { return block_ != nullptr; }

  std::uint32_t size() const { return block_ == nullptr ? 0 : block_->size; }
  std::string_view view() const { return {block_ == nullptr ? "" : block_->data(), size()}; }

  // Returns the bytes for writing. Precondition: this is the only handle.
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

// While it exists, this thread allocates and frees all bodies on the heap. Precondition of the
// constructor and the destructor: the thread has no Bytes.
class BytesOnHeap {
 public:
  BytesOnHeap();
  ~BytesOnHeap();
  BytesOnHeap(const BytesOnHeap&) = delete;
  BytesOnHeap& operator=(const BytesOnHeap&) = delete;
};

}  // namespace tubed
