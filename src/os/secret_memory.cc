#include "os/secret_memory.h"

#include <cstring>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"

namespace tubed::os {

SecretMemory::SecretMemory(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t size = (bytes + page - 1) / page * page;
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    if (const auto out_of_memory = std::get_new_handler(); out_of_memory != nullptr)
      out_of_memory();
  }
  TUBED_ASSERT(memory != MAP_FAILED);
  bytes_ = {static_cast<std::byte*>(memory), size};
  // Fails only on kernels that do not know this advice.
  ::madvise(memory, size, MADV_DONTDUMP);
}

SecretMemory::~SecretMemory() {
  ::explicit_bzero(bytes_.data(), bytes_.size());
  ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace tubed::os
