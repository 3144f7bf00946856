// SlabPool: memory for very many small objects of few sizes, as malloc is for objects of any size.
//
// A slab is a page that is divided into cells of one size, without a header on each cell, so that a
// job costs its own bytes and no more. A slab whose cells are all free is returned to the system at
// once: a queue that was long and is short again gives its memory back. One object that remains
// keeps its slab, which serves only objects of the same size; large objects and objects of many
// sizes therefore do not belong here.
//
// Ownership: the pool owns the slabs and never the objects. The process has one pool, which belongs
// to one thread: the loop's thread makes and frees all objects in it.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace tubed {

class SlabPool {
 public:
  // The largest cell.
  static constexpr std::size_t kMaxBytes = 256;

  // A cell of at least `bytes` bytes, aligned to 8; null if memory is exhausted. O(1).
  // Precondition: 0 < bytes <= kMaxBytes.
  static void* allocate(std::size_t bytes);

  // Frees a cell; null is allowed. O(1). Precondition: it was allocated with the same `bytes`.
  static void free(void* cell, std::size_t bytes);

  // As allocate(), but calls the new-handler if memory is exhausted, and then throws
  // std::bad_alloc, as operator new does.
  static void* allocate_or_throw(std::size_t bytes);

  // Bytes of all slabs in use.
  static std::size_t memory();
};

// A base class: the objects of derived classes are in slabs.
struct InSlab {
  static void* operator new(std::size_t bytes) { return SlabPool::allocate_or_throw(bytes); }
  static void operator delete(void* cell, std::size_t bytes) { SlabPool::free(cell, bytes); }
};

// An allocator for the nodes of a standard container; its larger arrays come from the heap.
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
