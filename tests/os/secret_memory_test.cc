#include "os/secret_memory.h"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

namespace tubed::os {

namespace {

// Returns the flags of the mapping that contains this address. [proc(5), VmFlags]
std::string flags_of(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool is_there = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char hyphen = 0;
    if (words >> std::hex >> begin >> hyphen >> end && hyphen == '-') {
      is_there = begin <= wanted && wanted < end;
    } else if (is_there && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return "none";
}

}  // namespace

TEST_CASE("no core dump contains the pages of secrets") {
  const SecretMemory memory(100);
  CHECK(memory.bytes().size() >= 100);
  for (const std::byte byte : memory.bytes()) REQUIRE(byte == std::byte{0});
  memory.bytes().back() = std::byte{1};
  CHECK(flags_of(memory.bytes().data()).find(" dd ") != std::string::npos);
  const std::string other(100'000, 'x');
  CHECK(flags_of(other.data()).find(" dd ") == std::string::npos);
}

}  // namespace tubed::os
