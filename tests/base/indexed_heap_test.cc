#include "base/indexed_heap.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace tubed {

namespace {

struct Item {
  std::uint64_t key = 0;
  std::uint32_t index = kNotInHeap;
};

using Heap = IndexedHeap<Item, std::uint64_t, &Item::index>;

Item* smallest(const std::vector<Item*>& items) {
  const auto before = [](const Item* a, const Item* b) { return a->key < b->key; };
  return items.empty() ? nullptr : *std::min_element(items.begin(), items.end(), before);
}

}  // namespace

TEST_CASE("an indexed heap agrees with a linear scan after any pushes, updates and erasures") {
  std::mt19937_64 random(1);
  std::vector<Item> items(300);
  std::vector<Item*> inside;
  Heap heap;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t number = random() % items.size();
    Item* item = &items[number];
    // The heap grows and shrinks by turns, so its array passes all sizes in both directions.
    const bool growing = step % 4000 < 2000;
    const std::uint64_t key = (random() % 1000) * items.size() + number;
    if (item->index == kNotInHeap) {
      if (!growing && random() % 4 != 0) continue;
      item->key = key;
      heap.push(key, item);
      inside.push_back(item);
    } else if (growing || random() % 4 == 0) {
      item->key = key;
      heap.update(key, item);
    } else {
      heap.erase(item);
      std::erase(inside, item);
      CHECK(item->index == kNotInHeap);
    }
    heap.check_invariants();
    REQUIRE(heap.size() == inside.size());
    REQUIRE(heap.first() == smallest(inside));
    if (!heap.empty()) REQUIRE(heap.top_key() == heap.top()->key);
  }
}

TEST_CASE("an indexed heap is emptied in order") {
  std::mt19937_64 random(2);
  std::vector<Item> items(1000);
  Heap heap;
  std::vector<std::uint64_t> keys;
  for (Item& item : items) {
    item.key = random();
    keys.push_back(item.key);
    heap.push(item.key, &item);
  }
  std::sort(keys.begin(), keys.end());
  for (const std::uint64_t key : keys) {
    REQUIRE(heap.top_key() == key);
    heap.erase(heap.top());
  }
  CHECK(heap.empty());
  CHECK(heap.first() == nullptr);
}

TEST_CASE("set inserts, updates and removes an item") {
  Item a;
  Item b;
  Heap heap;
  heap.set(false, 1, &a);
  CHECK(heap.empty());
  heap.set(true, 1, &a);
  heap.set(true, 2, &b);
  CHECK(heap.top() == &a);
  heap.set(true, 3, &a);
  CHECK(heap.top() == &b);
  heap.set(false, 2, &b);
  CHECK(heap.top() == &a);
  std::size_t count = 0;
  heap.for_each([&](std::uint64_t key, const Item* item) {
    CHECK(key == 3);
    CHECK(item == &a);
    ++count;
  });
  CHECK(count == 1);
}

TEST_CASE("visit_smallest visits any number of items in order") {
  std::mt19937_64 random(2);
  std::vector<Item> items(200);
  Heap heap;
  std::vector<std::uint64_t> keys;
  for (Item& item : items) {
    keys.push_back(item.key = random());
    heap.push(item.key, &item);
  }
  std::ranges::sort(keys);
  for (const std::size_t count : {0U, 1U, 5U, 199U, 200U, 300U}) {
    std::vector<std::uint64_t> visited;
    heap.visit_smallest(count, [&](const Item* item) { visited.push_back(item->key); });
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, 200));
    CHECK(visited == std::vector<std::uint64_t>(keys.begin(), end));
  }
  CHECK(heap.last()->index == 199);
}

}  // namespace tubed
