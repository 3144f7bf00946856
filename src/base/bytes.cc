#include "base/bytes.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/slab_pool.h"

namespace tubed {

namespace {

// Only small bodies: they have few sizes, and their cells are smaller than the jobs' own. Even if
// one body of every size keeps its slab, those slabs are few compared with the memory of the jobs.
constexpr std::size_t kMaxBytesInSlab = 64;

// False while this thread has a BytesOnHeap. Initialized to true to place it in .tdata rather than
// .tbss: mold 1.10 can write an invalid RELRO segment for a small .tbss.
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
