#include "text/edit_distance.h"

#include <doctest/doctest.h>

namespace tubed {

TEST_CASE("the distance counts insertions, removals and replacements") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("put", "put") == 0);
  CHECK(edit_distance("", "put") == 3);
  CHECK(edit_distance("put", "") == 3);
  CHECK(edit_distance("putt", "put") == 1);
  CHECK(edit_distance("pt", "put") == 1);
  CHECK(edit_distance("pat", "put") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

}  // namespace tubed
