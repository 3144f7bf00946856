#include "base/bytes.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace tubed {

Bytes Bytes::allocate(std::uint32_t size) {
  Bytes bytes;
  void* memory = std::malloc(sizeof(Block) + size);
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
  std::free(block);
}

}  // namespace tubed
