#include "base/bytes.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/slab_pool.h"

namespace tubed {

namespace {

// Small bodies only: they have few sizes, and their cells are smaller than those of their jobs. In
// the worst case one body of each slab remains, for every size; the slabs kept are then still few
// in comparison with the jobs' memory.
constexpr std::size_t kMaxBytesInSlab = 64;

// Of this thread: false while it has a BytesOnHeap. Initialized with true, so that the program has
// .tdata and not .tbss: mold 1.10 can make an invalid RELRO segment with a small .tbss.
constinit thread_local bool uses_slab = true;

bool is_in_slab(std::size_t bytes) {
  return bytes <= kMaxBytesInSlab && uses_slab;
}

void* take(std::size_t bytes) {
  return is_in_slab(bytes) ? SlabPool::allocate(bytes) : std::malloc(bytes);
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
  if (!is_in_slab(bytes)) return std::free(block);
  SlabPool::free(block, bytes);
}

BytesOnHeap::BytesOnHeap() {
  TUBED_ASSERT(uses_slab);
  uses_slab = false;
}

BytesOnHeap::~BytesOnHeap() {
  uses_slab = true;
}

}  // namespace tubed
