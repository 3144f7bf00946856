#include "cluster/entry_places.h"

#include <doctest/doctest.h>

namespace tubed::cluster {

namespace {

// Returns the oldest file with a needed entry; 0: none up to file 9.
std::uint64_t oldest(const EntryPlaces& places) {
  for (std::uint64_t file = 1; file < 10; ++file) {
    if (places.any_up_to(file)) return file;
  }
  return 0;
}

}  // namespace

TEST_CASE("a file is needed until the entries in later files suffice") {
  EntryPlaces places;
  CHECK(oldest(places) == 0);
  places.replace(1, 5, 1);
  places.replace(6, 5, 1);
  places.replace(11, 10, 2);
  places.replace(21, 1, 4);
  places.cut(10);
  CHECK(oldest(places) == 1);
  places.cut(11);
  CHECK(oldest(places) == 2);
  places.cut(21);
  CHECK(oldest(places) == 4);
  places.cut(22);
  CHECK(oldest(places) == 4);
  places.clear();
  CHECK(oldest(places) == 0);
}

TEST_CASE("replaced entries do not need their files") {
  EntryPlaces places;
  places.replace(1, 10, 1);
  places.replace(11, 10, 2);
  places.replace(8, 1, 3);
  places.cut(8);
  CHECK(oldest(places) == 3);
  places.replace(8, 2, 4);
  CHECK(oldest(places) == 4);
  places.replace(8, 0, 5);
  CHECK(oldest(places) == 0);
  places.replace(8, 1, 5);
  CHECK(oldest(places) == 5);
}

}  // namespace tubed::cluster
