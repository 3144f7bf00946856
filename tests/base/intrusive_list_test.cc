#include "base/intrusive_list.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace tubed {

namespace {

struct Item {
  ListLinks<Item> links;
};

using List = IntrusiveList<Item, &Item::links>;

std::vector<Item*> forwards(const List& list) {
  std::vector<Item*> items;
  for (Item* item = list.first(); item != nullptr; item = List::next(item)) items.push_back(item);
  return items;
}

std::vector<Item*> backwards(const List& list) {
  std::vector<Item*> items;
  for (Item* item = list.last(); item != nullptr; item = List::previous(item)) {
    items.insert(items.begin(), item);
  }
  return items;
}

}  // namespace

TEST_CASE("an intrusive list holds what a vector would, whatever is inserted and erased") {
  std::mt19937_64 random(1);
  std::vector<Item> items(40);
  std::vector<Item*> outside;
  for (Item& item : items) outside.push_back(&item);
  std::vector<Item*> expected;
  List list;
  for (int step = 0; step < 5000; ++step) {
    const bool insert = !outside.empty() && (expected.empty() || random() % 2 == 0);
    if (insert) {
      Item* item = outside.back();
      outside.pop_back();
      const std::size_t place = random() % (expected.size() + 1);
      if (place == expected.size() && random() % 2 == 0) {
        list.push_back(item);
      } else {
        list.insert_after(place == 0 ? nullptr : expected[place - 1], item);
      }
      expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(place), item);
    } else {
      Item* item = expected[random() % expected.size()];
      list.erase(item);
      std::erase(expected, item);
      outside.push_back(item);
    }
    list.check_invariants();
    REQUIRE(list.size() == expected.size());
    REQUIRE(list.empty() == expected.empty());
    REQUIRE(forwards(list) == expected);
    REQUIRE(backwards(list) == expected);
  }
}

}  // namespace tubed
