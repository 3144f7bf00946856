#include "base/bytes.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/slots.h"

namespace tubed {

namespace {

// Few sizes, and the smaller part of what their jobs take: should a body stay in each page when the
// others go, in one size after the other, the pages kept are still few beside the jobs.
constexpr std::size_t kMaxBytesInSlot = 64;

void* take(std::size_t bytes) {
  return bytes <= kMaxBytesInSlot ? take_slot(bytes) : std::malloc(bytes);
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
  if (!bytes) {
    if (const auto out_of_memory = std::get_new_handler()) out_of_memory();
    TUBED_ASSERT(bytes);
  }
  if (!text.empty()) std::memcpy(bytes.block_->data(), text.data(), text.size());
  return bytes;
}

void Bytes::release(Block* block) {
  const std::size_t bytes = sizeof(Block) + block->size;
  if (bytes > kMaxBytesInSlot) return std::free(block);
  give_slot(block, bytes);
}

}  // namespace tubed
