// Three layers, each with its own list of what is free:
//
// 1. Pages takes regions of address space from the kernel and cuts them into pages. A free page
//    keeps its address; its memory goes back to the kernel with madvise(2), except for a few spare
//    pages.
// 2. SizeClass divides pages into cells of one size. A page in use is a slab: its Slab, at its
//    front, has the list of its free cells. The slabs with a free cell are in a list, so that
//    allocate() takes the first. free() finds the slab of a cell by rounding down its address, as
//    pages are aligned to their size.
// 3. SlabPool chooses the size class by the number of bytes.
//
// Free cells are poisoned: the address sanitizer then reports a use after free here too.
#include "base/slab_pool.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <sys/mman.h>

#include "base/assert.h"

#if defined(__SANITIZE_ADDRESS__)
#define TUBED_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TUBED_ADDRESS_SANITIZER
#endif
#endif

#ifdef TUBED_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace tubed {
namespace {

// A multiple of the kernel's page size: 4 KiB on x86, up to 64 KiB elsewhere.
#if defined(__x86_64__) || defined(__i386__)
constexpr std::size_t kPageBytes = 16 * 1024;
#else
constexpr std::size_t kPageBytes = 64 * 1024;
#endif
// The size of a region. Its address space is never released; its memory is, page by page.
constexpr std::size_t kRegionBytes = 32 * 1024 * 1024;
// Free pages whose memory is kept for the next allocation.
constexpr std::size_t kSparePages = 256 * 1024 / kPageBytes;

// Makes the address sanitizer report accesses to this memory.
void forbid([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef TUBED_ADDRESS_SANITIZER
  ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
}

void permit([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef TUBED_ADDRESS_SANITIZER
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
}

// Pages of kPageBytes, each aligned to its size.
class Pages {
 public:
  // Null if memory is exhausted.
  char* take() {
    if (!spare_.empty()) return taken(take_last(spare_));
    if (!returned_.empty()) return taken(take_last(returned_));
    if (unused_ == end_ && !take_region()) return nullptr;
    char* const page = unused_;
    unused_ += kPageBytes;
    return taken(page);
  }

  void give(char* page) {
    bytes_ -= kPageBytes;
    permit(page, kPageBytes);
    // The range stays mapped: unmapping single pages would split the region into many mappings.
    const bool is_spare =
        spare_.size() < kSparePages || ::madvise(page, kPageBytes, MADV_DONTNEED) != 0;
    (is_spare ? spare_ : returned_).push_back(page);
  }

  std::size_t bytes() const { return bytes_; }

 private:
  static char* take_last(std::vector<char*>& pages) {
    char* const page = pages.back();
    pages.pop_back();
    return page;
  }

  char* taken(char* page) {
    bytes_ += kPageBytes;
    return page;
  }

  bool take_region() {
    void* const region = ::mmap(nullptr, kRegionBytes + kPageBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) return false;
#ifdef TUBED_ADDRESS_SANITIZER
    __lsan_register_root_region(region, kRegionBytes + kPageBytes);
#endif
    const auto address = reinterpret_cast<std::uintptr_t>(region);
    unused_ = static_cast<char*>(region) + (kPageBytes - address % kPageBytes) % kPageBytes;
    end_ = unused_ + kRegionBytes;
    return true;
  }

  std::vector<char*> spare_;     // free, with memory
  std::vector<char*> returned_;  // free, without memory
  char* unused_ = nullptr;       // never used part of the last region
  char* end_ = nullptr;
  std::size_t bytes_ = 0;  // in pages in use
};

struct FreeCell {
  FreeCell* next;
};

// The header of a slab, at the front of its page.
struct Slab {
  Slab* previous;  // neighbours in the list of slabs with a free cell
  Slab* next;
  FreeCell* free;
  std::uint32_t fresh;  // offset of the first cell that was never used
  std::uint32_t used;
};
constexpr std::size_t kFirstCell = 64;
static_assert(sizeof(Slab) <= kFirstCell);

// The slabs with cells of one size.
class SizeClass {
 public:
  // Returns a cell of `bytes` bytes, of which the object uses `asked`.
  void* take(Pages& pages, std::size_t bytes, std::size_t asked) {
    if (first_ == nullptr && !add_slab(pages)) return nullptr;
    Slab* const slab = first_;
    void* cell = slab->free;
    if (cell != nullptr) {
      permit(cell, std::max(asked, sizeof(FreeCell)));
      slab->free = slab->free->next;
    } else {
      cell = reinterpret_cast<char*>(slab) + slab->fresh;
      slab->fresh += static_cast<std::uint32_t>(bytes);
      permit(cell, asked);
    }
    ++slab->used;
    if (is_full(*slab, bytes)) unlink(slab);
    return cell;
  }

  void give(Pages& pages, void* cell, std::size_t bytes) {
    const auto offset = reinterpret_cast<std::uintptr_t>(cell) % kPageBytes;
    auto* const slab = reinterpret_cast<Slab*>(static_cast<char*>(cell) - offset);
    TUBED_ASSERT(slab->used > 0 && offset >= kFirstCell && offset < slab->fresh);
    if (is_full(*slab, bytes)) link(slab);
    permit(cell, bytes);
    slab->free = new (cell) FreeCell{slab->free};
    forbid(cell, bytes);
    // Keeps the last slab with a free cell. Otherwise a job that is put and deleted repeatedly
    // would allocate a slab each time.
    if (--slab->used > 0 || (slab->previous == nullptr && slab->next == nullptr)) return;
    unlink(slab);
    pages.give(reinterpret_cast<char*>(slab));
  }

 private:
  static bool is_full(const Slab& slab, std::size_t bytes) {
    return slab.free == nullptr && slab.fresh + bytes > kPageBytes;
  }

  bool add_slab(Pages& pages) {
    char* const memory = pages.take();
    if (memory == nullptr) return false;
    permit(memory, kPageBytes);
    auto* const slab = new (memory) Slab{.previous = nullptr,
                                         .next = nullptr,
                                         .free = nullptr,
                                         .fresh = static_cast<std::uint32_t>(kFirstCell),
                                         .used = 0};
    forbid(memory + kFirstCell, kPageBytes - kFirstCell);
    link(slab);
    return true;
  }

  void link(Slab* slab) {
    slab->previous = nullptr;
    slab->next = first_;
    if (first_ != nullptr) first_->previous = slab;
    first_ = slab;
  }

  void unlink(Slab* slab) {
    (slab->previous == nullptr ? first_ : slab->previous->next) = slab->next;
    if (slab->next != nullptr) slab->next->previous = slab->previous;
  }

  Slab* first_ = nullptr;
};

// Cell sizes are multiples of this.
constexpr std::size_t kCellStep = 8;
constexpr std::size_t kClasses = SlabPool::kMaxBytes / kCellStep;

constexpr std::size_t class_of(std::size_t bytes) {
  return (bytes - 1) / kCellStep;
}
constexpr std::size_t bytes_of(std::size_t size_class) {
  return (size_class + 1) * kCellStep;
}

struct Pool {
  Pages pages;
  std::array<SizeClass, kClasses> classes;
};

// Never destroyed: objects of static storage duration may outlive it.
Pool& pool() {
  static Pool& all = *new Pool;
  return all;
}

}  // namespace

void* SlabPool::allocate(std::size_t bytes) {
  TUBED_ASSERT(bytes > 0 && bytes <= kMaxBytes);
  const std::size_t size_class = class_of(bytes);
  Pool& all = pool();
  return all.classes[size_class].take(all.pages, bytes_of(size_class), bytes);
}

void SlabPool::free(void* cell, std::size_t bytes) {
  if (cell == nullptr) return;
  const std::size_t size_class = class_of(bytes);
  Pool& all = pool();
  all.classes[size_class].give(all.pages, cell, bytes_of(size_class));
}

void* SlabPool::allocate_or_throw(std::size_t bytes) {
  void* const cell = allocate(bytes);
  if (cell != nullptr) return cell;
  if (const auto out_of_memory = std::get_new_handler()) out_of_memory();
  throw std::bad_alloc();
}

std::size_t SlabPool::memory() {
  return pool().pages.bytes();
}

}  // namespace tubed
