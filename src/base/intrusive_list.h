// IntrusiveList: a doubly linked list whose links are members of the items. Appends and removes any
// item in O(1), without allocation.
//
// Ownership: none. Invariant: with one pair of links, an item is in at most one list.
#pragma once

#include <cstddef>

#include "base/assert.h"

namespace tubed {

template <class Item>
struct ListLinks {
  Item* previous = nullptr;
  Item* next = nullptr;
};

template <class Item, ListLinks<Item> Item::*Links>
class IntrusiveList {
 public:
  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  Item* first() const { return first_; }
  static Item* next(const Item* item) { return (item->*Links).next; }

  void push_back(Item* item) { insert_after(last_, item); }

  // Inserts `item` after `place`, or at the front if `place` is null.
  void insert_after(Item* place, Item* item) {
    Item* next = place == nullptr ? first_ : (place->*Links).next;
    item->*Links = {place, next};
    (place == nullptr ? first_ : (place->*Links).next) = item;
    (next == nullptr ? last_ : (next->*Links).previous) = item;
    ++size_;
  }
  Item* last() const { return last_; }
  static Item* previous(const Item* item) { return (item->*Links).previous; }

  // Precondition: the item is in this list.
  void erase(Item* item) {
    auto& links = item->*Links;
    TUBED_ASSERT(size_ > 0 && (links.previous != nullptr || first_ == item));
    (links.previous == nullptr ? first_ : (links.previous->*Links).next) = links.next;
    (links.next == nullptr ? last_ : (links.next->*Links).previous) = links.previous;
    links = {};
    --size_;
  }

  // Asserts that the links agree with each other and with size(). O(n).
  void check_invariants() const {
    std::size_t count = 0;
    const Item* previous = nullptr;
    for (const Item* item = first_; item != nullptr; item = next(item), ++count) {
      TUBED_ASSERT((item->*Links).previous == previous);
      previous = item;
    }
    TUBED_ASSERT(previous == last_ && count == size_);
  }

 private:
  Item* first_ = nullptr;
  Item* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tubed
