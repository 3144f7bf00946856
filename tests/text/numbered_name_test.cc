#include "text/numbered_name.h"

#include <doctest/doctest.h>

namespace tubed::text_test {
namespace {

TEST_CASE("a number has one name") {
  for (const std::uint64_t number : {std::uint64_t{1}, std::uint64_t{9'999'999'999},
                                     std::uint64_t{10'000'000'000}, UINT64_MAX}) {
    CHECK(number_of_name("raft.", numbered_name("raft.", number)) == number);
  }
  CHECK(numbered_name("raft.", 12) == "raft.0000000012");
}

TEST_CASE("other names have no number") {
  for (const char* name :
       {"", "raft.", "raft.12", "raft.00000000012", "raft.0000000000", "raft.0000000012.new",
        "raft.-000000012", "raft.18446744073709551616", "rafts.0000000012", "state.0000000012"}) {
    CAPTURE(name);
    CHECK_FALSE(number_of_name("raft.", name));
  }
}

}  // namespace
}  // namespace tubed::text_test
