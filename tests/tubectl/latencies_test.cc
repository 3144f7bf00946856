#include "tubectl/bench/latencies.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

namespace tubed::tubectl::bench {

TEST_CASE("each latency is written as four bytes, the lowest first") {
  const auto file =
      std::filesystem::temp_directory_path() / ("tubectl-latencies-" + std::to_string(::getpid()));
  Latencies latencies(true);
  latencies.add(std::chrono::nanoseconds(0x01020304));
  latencies.add(std::chrono::seconds(5));
  latencies.add(std::chrono::nanoseconds(-1));
  REQUIRE(latencies.write(file));
  std::ifstream stream(file, std::ios::binary);
  const std::string written(std::istreambuf_iterator<char>(stream), {});
  std::filesystem::remove(file);
  CHECK(written == std::string("\4\3\2\1\xff\xff\xff\xff\0\0\0\0", 12));
  CHECK(latencies.count() == 3);
  CHECK(latencies.max() == 5'000'000'000);
}

TEST_CASE("a file that cannot be written is an error") {
  const auto written = Latencies(true).write("/nonexistent/latencies");
  REQUIRE_FALSE(written);
  CHECK(written.error().message == "cannot open /nonexistent/latencies: No such file or directory");
}

}  // namespace tubed::tubectl::bench
