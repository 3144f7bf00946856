// GrowingArray: an array of trivial values that grows and shrinks without copying when it is large.
//
// realloc(3) moves a large block by remapping its pages, in time that does not depend on its size.
// std::vector copies the block: for a million entries, that would stall the event loop for tens of
// milliseconds. Ownership: as std::vector, but move-only.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

#include "base/assert.h"

namespace tubed {

template <class T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  GrowingArray() = default;
  ~GrowingArray() { std::free(data_); }
  GrowingArray(GrowingArray&& other) noexcept { swap(other); }
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    GrowingArray(std::move(other)).swap(*this);
    return *this;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }

  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  // Precondition of front(), back() and pop_back(): the array is not empty.
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  void pop_back() { --size_; }

  void swap(GrowingArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  // O(1) amortised. Throws std::bad_alloc like std::vector.
  void push_back(const T& value) {
    if (size_ == capacity_) set_capacity(capacity_ == 0 ? kFirstCapacity : 2 * capacity_);
    data_[size_++] = value;
  }

  // Precondition: size() <= capacity.
  void set_capacity(std::size_t capacity) {
    TUBED_ASSERT(size_ <= capacity && capacity > 0);
    void* const moved = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
    if (moved == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(moved);
    capacity_ = capacity;
  }

 private:
  static constexpr std::size_t kFirstCapacity = 1;

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace tubed
