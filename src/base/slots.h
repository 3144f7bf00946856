// Slots: memory for very many small objects of few sizes, as malloc is for objects of any size.
//
// Slots of one size stand side by side in pages, without a header on each, so that a job costs its
// own bytes and no more. A page whose slots are all free goes back to the system at once: what a
// queue took when it was long it gives back when it is short. An object that stays keeps its page,
// and only for objects of its own size; that is why large and manifold things do not belong here.
//
// It owns its pages and never the objects. It belongs to the process, as malloc does, and to one
// thread: objects in slots are made and freed on the loop's.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace tubed {

// The largest object that has a slot.
inline constexpr std::size_t kMaxSlotBytes = 256;

// A slot of that many bytes, 8-byte aligned; null if there is no memory. O(1).
// Precondition: 0 < bytes <= kMaxSlotBytes.
void* take_slot(std::size_t bytes);
// Precondition: it was taken with the same number of bytes. O(1).
void give_slot(void* slot, std::size_t bytes);

// What all slots of the process take from the system now, in bytes.
std::size_t slot_memory();

// The same for one that may not fail: asks the new-handler first, as operator new does.
void* take_slot_or_fail(std::size_t bytes);

// A class that derives from this one has its objects in slots.
struct InSlot {
  static void* operator new(std::size_t bytes) { return take_slot_or_fail(bytes); }
  static void operator delete(void* slot, std::size_t bytes) { give_slot(slot, bytes); }
};

// For the nodes of a standard container; larger arrays come from the heap.
template <class T>
struct SlotAllocator {
  using value_type = T;
  static_assert(alignof(T) <= 8);

  SlotAllocator() = default;
  template <class Other>
  SlotAllocator(const SlotAllocator<Other>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (count > 1) return std::allocator<T>().allocate(count);
    return static_cast<T*>(take_slot_or_fail(bytes));
  }
  void deallocate(T* memory, std::size_t count) {
    if (count > 1) return std::allocator<T>().deallocate(memory, count);
    give_slot(memory, sizeof(T));
  }
  friend bool operator==(SlotAllocator, SlotAllocator) { return true; }
};

}  // namespace tubed
