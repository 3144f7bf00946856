// IndexedHeap: a 4-ary min-heap of items that store their own position, so any item can be removed
// or moved in O(log n). Keys are stored next to the pointers: comparisons do not touch the items.
//
// Ownership: the heap owns its array, not the items. Invariant: for each item in the heap,
// `item->*Index` is its position. Keys are unique, or the caller does not depend on the order of
// ties.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "base/growing_array.h"

namespace tubed {

// The index of an item that is in no heap.
inline constexpr std::uint32_t kNotInHeap = UINT32_MAX;

template <class Item, class Key, std::uint32_t Item::*Index>
class IndexedHeap {
 public:
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }

  // The item with the smallest key, and that key. Precondition: !empty().
  Item* top() const { return entries_.front().item; }
  const Key& top_key() const { return entries_.front().key; }

  // Returns the item with the smallest key, or null.
  Item* first() const { return entries_.empty() ? nullptr : entries_.front().item; }

  // Returns an item that can be removed in O(1). Precondition: !empty().
  Item* last() const { return entries_.back().item; }

  // O(log n) amortised. Precondition: the item is in no heap.
  void push(const Key& key, Item* item) {
    TUBED_ASSERT(item->*Index == kNotInHeap);
    entries_.push_back({key, item});
    sift_up(entries_.size() - 1);
  }

  // Precondition of erase() and update(): the item is in this heap. O(log n).
  [[gnu::always_inline]] void erase(Item* item) {
    const std::size_t place = place_of(item);
    item->*Index = kNotInHeap;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (place < entries_.size()) place_and_sift(place, last);
    shrink();
  }
  void update(const Key& key, Item* item) { place_and_sift(place_of(item), {key, item}); }

  // Makes the heap contain the item exactly if `wanted`, with this key.
  void set(bool wanted, const Key& key, Item* item) {
    const bool inside = item->*Index != kNotInHeap;
    if (wanted && inside) {
      update(key, item);
    } else if (wanted) {
      push(key, item);
    } else if (inside) {
      erase(item);
    }
  }

  // Calls visit(key, item) for each item, in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Entry& entry : entries_) visit(entry.key, entry.item);
  }

  // Calls visit(item) for the `count` items with the smallest keys, in order. O(count log count).
  template <class Visit>
  void visit_smallest(std::size_t count, Visit visit) const {
    // A heap of the places that are not yet visited although their parents are.
    std::vector<std::size_t> open;
    const auto later = [this](std::size_t a, std::size_t b) {
      return entries_[b].key < entries_[a].key;
    };
    const auto open_place = [&](std::size_t place) {
      if (place >= entries_.size()) return;
      open.push_back(place);
      std::push_heap(open.begin(), open.end(), later);
    };
    for (open_place(0); count > 0 && !open.empty(); --count) {
      std::pop_heap(open.begin(), open.end(), later);
      const std::size_t place = open.back();
      open.pop_back();
      visit(entries_[place].item);
      for (std::size_t child = 1; child <= kArity; ++child) open_place(place * kArity + child);
    }
  }

  // Asserts the order and the indices. O(n).
  void check_invariants() const {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      TUBED_ASSERT(entries_[i].item->*Index == i);
      if (i > 0) TUBED_ASSERT(!(entries_[i].key < entries_[parent(i)].key));
    }
  }

 private:
  struct Entry {
    Key key;
    Item* item;
  };

  static constexpr std::size_t kArity = 4;
  static constexpr std::size_t kKeptCapacity = 64;
  static std::size_t parent(std::size_t i) { return (i - 1) / kArity; }

  std::size_t place_of(const Item* item) const {
    const std::size_t place = item->*Index;
    TUBED_ASSERT(place < entries_.size() && entries_[place].item == item);
    return place;
  }

  void put_at(std::size_t place, const Entry& entry) {
    entries_[place] = entry;
    entry.item->*Index = static_cast<std::uint32_t>(place);
  }

  // Puts `entry` into the free `place` and restores the order of the heap.
  void place_and_sift(std::size_t place, const Entry& entry) {
    entries_[place] = entry;
    if (place > 0 && entry.key < entries_[parent(place)].key) {
      sift_up(place);
    } else {
      sift_down(place);
    }
  }

  void sift_up(std::size_t place) {
    const Entry entry = entries_[place];
    while (place > 0 && entry.key < entries_[parent(place)].key) {
      put_at(place, entries_[parent(place)]);
      place = parent(place);
    }
    put_at(place, entry);
  }

  void sift_down(std::size_t place) {
    const Entry entry = entries_[place];
    const std::size_t count = entries_.size();
    for (;;) {
      const std::size_t first = place * kArity + 1;
      if (first >= count) break;
      std::size_t smallest = first;
      const std::size_t end = first + kArity < count ? first + kArity : count;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (entries_[child].key < entries_[smallest].key) smallest = child;
      }
      if (!(entries_[smallest].key < entry.key)) break;
      put_at(place, entries_[smallest]);
      place = smallest;
    }
    put_at(place, entry);
  }

  // Halves the array when less than a quarter is in use, so a heap that was large returns its
  // memory. O(1) amortised.
  void shrink() {
    if (entries_.capacity() > kKeptCapacity && entries_.size() < entries_.capacity() / 4) {
      entries_.set_capacity(entries_.capacity() / 2);
    }
  }

  GrowingArray<Entry> entries_;
};

}  // namespace tubed
