#include "os/process.h"

#include <vector>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/descriptor.h"

namespace tubed::os_test {

using os::Descriptor;
using os::open_descriptors;

TEST_CASE("open descriptors are counted even if the kernel does not report their number") {
  // A directory with the same entries, for which no kernel reports their number as its size.
  constexpr const char* kListed = "/proc/self/fdinfo";
  const std::uint64_t before = open_descriptors();
  CHECK(before >= 3);
  CHECK(open_descriptors(kListed) == before);
  std::vector<Descriptor> opened;
  for (int i = 0; i < 100; ++i) opened.emplace_back(::dup(0));
  CHECK(open_descriptors() == before + 100);
  CHECK(open_descriptors(kListed) == before + 100);
  opened.erase(opened.begin(), opened.begin() + 40);  // leaves gaps in the numbers
  CHECK(open_descriptors() == before + 60);
  CHECK(open_descriptors(kListed) == before + 60);
  CHECK(open_descriptors("/nowhere") == 0);
}

TEST_CASE("the limit of descriptors is the soft limit") {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(os::descriptor_limit() == limit.rlim_cur);
}

}  // namespace tubed::os_test
