#include "base/slots.h"

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

// A multiple of the kernel's own pages, which are 4 KiB on these machines and up to 64 KiB
// elsewhere.
#if defined(__x86_64__) || defined(__i386__)
constexpr std::size_t kPageBytes = 16 * 1024;
#else
constexpr std::size_t kPageBytes = 64 * 1024;
#endif
// Address space is taken in pieces of this size and never given back; memory in it is, by page.
constexpr std::size_t kRegionBytes = 32 * 1024 * 1024;
// So much of free pages is kept for the next one who asks.
constexpr std::size_t kSparePages = 256 * 1024 / kPageBytes;

// The sanitizer knows objects in slots, too, and what is not to be touched between them.
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

// Pages, each at a multiple of its size.
class Pages {
 public:
  // Null if there is no memory.
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
    // Keeps the addresses: mappings stay few however the pages come back.
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

  std::vector<char*> spare_;     // free, and still there
  std::vector<char*> returned_;  // free, and only their addresses are ours
  char* unused_ = nullptr;       // of the last region, what nobody has had yet
  char* end_ = nullptr;
  std::size_t bytes_ = 0;  // of the pages in use
};

struct FreeSlot {
  FreeSlot* next;
};

// Stands at the front of its page.
struct Page {
  Page* previous;  // links of the list of pages that have a free slot
  Page* next;
  FreeSlot* free;
  std::uint32_t fresh;  // offset of the first slot that nobody has had yet
  std::uint32_t used;
};
constexpr std::size_t kFirstSlot = 64;
static_assert(sizeof(Page) <= kFirstSlot);

// All slots of one size.
class SizeClass {
 public:
  // `asked` of the slot's bytes will be used.
  void* take(Pages& pages, std::size_t bytes, std::size_t asked) {
    if (first_ == nullptr && !add_page(pages)) return nullptr;
    Page* const page = first_;
    void* slot = page->free;
    if (slot != nullptr) {
      permit(slot, std::max(asked, sizeof(FreeSlot)));
      page->free = page->free->next;
    } else {
      slot = reinterpret_cast<char*>(page) + page->fresh;
      page->fresh += static_cast<std::uint32_t>(bytes);
      permit(slot, asked);
    }
    ++page->used;
    if (is_full(*page, bytes)) unlink(page);
    return slot;
  }

  void give(Pages& pages, void* slot, std::size_t bytes) {
    const auto offset = reinterpret_cast<std::uintptr_t>(slot) % kPageBytes;
    auto* const page = reinterpret_cast<Page*>(static_cast<char*>(slot) - offset);
    TUBED_ASSERT(page->used > 0 && offset >= kFirstSlot && offset < page->fresh);
    if (is_full(*page, bytes)) link(page);
    permit(slot, bytes);
    page->free = new (slot) FreeSlot{page->free};
    forbid(slot, bytes);
    // The last page with room stays: one job that comes and goes must not cost a page each time.
    if (--page->used > 0 || (page->previous == nullptr && page->next == nullptr)) return;
    unlink(page);
    pages.give(reinterpret_cast<char*>(page));
  }

 private:
  static bool is_full(const Page& page, std::size_t bytes) {
    return page.free == nullptr && page.fresh + bytes > kPageBytes;
  }

  bool add_page(Pages& pages) {
    char* const memory = pages.take();
    if (memory == nullptr) return false;
    permit(memory, kPageBytes);
    auto* const page = new (memory) Page{.previous = nullptr,
                                         .next = nullptr,
                                         .free = nullptr,
                                         .fresh = static_cast<std::uint32_t>(kFirstSlot),
                                         .used = 0};
    forbid(memory + kFirstSlot, kPageBytes - kFirstSlot);
    link(page);
    return true;
  }

  void link(Page* page) {
    page->previous = nullptr;
    page->next = first_;
    if (first_ != nullptr) first_->previous = page;
    first_ = page;
  }

  void unlink(Page* page) {
    (page->previous == nullptr ? first_ : page->previous->next) = page->next;
    if (page->next != nullptr) page->next->previous = page->previous;
  }

  Page* first_ = nullptr;
};

// Sizes rise in steps of so many bytes.
constexpr std::size_t kSlotStep = 8;
constexpr std::size_t kClasses = kMaxSlotBytes / kSlotStep;

constexpr std::size_t class_of(std::size_t bytes) {
  return (bytes - 1) / kSlotStep;
}
constexpr std::size_t bytes_of(std::size_t size_class) {
  return (size_class + 1) * kSlotStep;
}

struct Slots {
  Pages pages;
  std::array<SizeClass, kClasses> classes;
};

// Never destroyed: objects of static storage may outlive whatever else is.
Slots& slots() {
  static Slots& all = *new Slots;
  return all;
}

}  // namespace

void* take_slot(std::size_t bytes) {
  TUBED_ASSERT(bytes > 0 && bytes <= kMaxSlotBytes);
  const std::size_t size_class = class_of(bytes);
  Slots& all = slots();
  return all.classes[size_class].take(all.pages, bytes_of(size_class), bytes);
}

void give_slot(void* slot, std::size_t bytes) {
  if (slot == nullptr) return;
  const std::size_t size_class = class_of(bytes);
  Slots& all = slots();
  all.classes[size_class].give(all.pages, slot, bytes_of(size_class));
}

void* take_slot_or_fail(std::size_t bytes) {
  void* const slot = take_slot(bytes);
  if (slot != nullptr) return slot;
  if (const auto out_of_memory = std::get_new_handler()) out_of_memory();
  throw std::bad_alloc();
}

std::size_t slot_memory() {
  return slots().pages.bytes();
}

}  // namespace tubed
