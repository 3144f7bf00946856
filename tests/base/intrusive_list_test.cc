#include "base/intrusive_list.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace tubed {

namespace {

struct ListItem {
  ListLinks<ListItem> links;
};

using ItemList = IntrusiveList<ListItem, &ListItem::links>;

std::vector<ListItem*> forwards(const ItemList& list) {
  std::vector<ListItem*> items;
  for (ListItem* item = list.first(); item != nullptr; item = ItemList::next(item))
    items.push_back(item);
  return items;
}

std::vector<ListItem*> backwards(const ItemList& list) {
  std::vector<ListItem*> items;
  for (ListItem* item = list.last(); item != nullptr; item = ItemList::previous(item)) {
    items.insert(items.begin(), item);
  }
  return items;
}

}  // namespace

TEST_CASE("an intrusive list agrees with a vector after any insertions and erasures") {
  std::mt19937_64 random(1);
  std::vector<ListItem> items(40);
  std::vector<ListItem*> outside;
  for (ListItem& item : items) outside.push_back(&item);
  std::vector<ListItem*> expected;
  ItemList list;
  for (int step = 0; step < 5000; ++step) {
    const bool insert = !outside.empty() && (expected.empty() || random() % 2 == 0);
    if (insert) {
      ListItem* item = outside.back();
      outside.pop_back();
      const std::size_t place = random() % (expected.size() + 1);
      if (place == expected.size() && random() % 2 == 0) {
        list.push_back(item);
      } else {
        list.insert_after(place == 0 ? nullptr : expected[place - 1], item);
      }
      expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(place), item);
    } else {
      ListItem* item = expected[random() % expected.size()];
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
