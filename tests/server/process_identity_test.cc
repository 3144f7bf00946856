#include "server/process_identity.h"

#include <cstdint>
#include <string>

#include <doctest/doctest.h>

namespace tubed::server {

TEST_CASE("the id of a server is no number") {
  for (const std::uint64_t random :
       {std::uint64_t{0}, std::uint64_t{0x1234567890123456}, std::uint64_t{0x12e4567890123456},
        std::uint64_t{0x0e12345678901234}, std::uint64_t{0x9999999999999999}, UINT64_MAX}) {
    const std::string id = instance_id(random);
    CAPTURE(id);
    CHECK(id.size() == 16);
    CHECK(id.find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK((id.front() >= 'a' && id.front() <= 'f'));
  }
  CHECK(instance_id(0x1234567890123456) == "b234567890123456");
  CHECK(identify_for_tests(Time{}).instance == "a000000000000000");
  CHECK(identify().instance != identify().instance);
}

}  // namespace tubed::server
