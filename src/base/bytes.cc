#include "base/bytes.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/slots.h"

namespace tubed {

namespace {

void* take(std::size_t bytes) {
  return bytes <= kMaxSlotBytes ? take_slot(bytes) : std::malloc(bytes);
}

}  // namespace

Bytes Bytes::allocate(std::uint32_t size) {
  Bytes bytes;
  void* memory = take(sizeof(Block) + size);
  if (memory != nullptr) bytes.block_ = new (memory) Block{.references = 1, .size = size};
  return bytes;
}

Bytes Bytes::copy_of(std::string_view text) {
  Bytes bytes = allocate(static_cast<std::uint32_t>(text.size()));
  TUBED_ASSERT(bytes);
  if (!text.empty()) std::memcpy(bytes.block_->data(), text.data(), text.size());
  return bytes;
}

void Bytes::release(Block* block) {
  const std::size_t bytes = sizeof(Block) + block->size;
  if (bytes > kMaxSlotBytes) return std::free(block);
  give_slot(block, bytes);
}

}  // namespace tubed
