// SlabPool: an allocator for very many small objects of few sizes.
//
// A slab is a page divided into cells of one size. Cells have no header, so a job costs only its
// own bytes. A slab whose cells are all free is returned to the system at once: a queue that was
// long and is short again frees its memory. A single remaining object keeps its whole slab, which
// only objects of the same size can use; large objects and objects of many sizes therefore do not
// belong here.
//
// Ownership: the pool owns the slabs, never the objects. The process has one pool, which belongs to
// the loop's thread: only that thread creates and frees objects in it.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace tubed {

class SlabPool {
 public:
  // The size of the largest cell.
  static constexpr std::size_t kMaxBytes = 256;

  // Returns a cell of at least `bytes` bytes, aligned to 8; null if memory is exhausted. O(1).
  // Precondition: 0 < bytes <= kMaxBytes.
  static void* allocate(std::size_t bytes);

  // Frees a cell; ignores null. O(1). Precondition: it was allocated with the same `bytes`.
  static void free(void* cell, std::size_t bytes);

  // Like allocate(), but on exhausted memory calls the new-handler and then throws std::bad_alloc,
  // as operator new does.
  static void* allocate_or_throw(std::size_t bytes);

  // Returns the bytes of all slabs in use.
  static std::size_t memory();
};

// A base class that allocates objects of derived classes in slabs.
struct InSlab {
  static void* operator new(std::size_t bytes) { return SlabPool::allocate_or_throw(bytes); }
  static void operator delete(void* cell, std::size_t bytes) { SlabPool::free(cell, bytes); }
};

// An allocator for the nodes of a standard container. Arrays, such as the buckets of a hash table,
// come from the heap.
template <class T>
struct SlabAllocator {
  using value_type = T;
  static_assert(alignof(T) <= 8);

  SlabAllocator() = default;
  template <class Other>
  SlabAllocator(const SlabAllocator<Other>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (count > 1) return std::allocator<T>().allocate(count);
    return static_cast<T*>(SlabPool::allocate_or_throw(bytes));
  }
  void deallocate(T* memory, std::size_t count) {
    if (count > 1) return std::allocator<T>().deallocate(memory, count);
    SlabPool::free(memory, sizeof(T));
  }
  friend bool operator==(SlabAllocator, SlabAllocator) { return true; }
};

}  // namespace tubed
