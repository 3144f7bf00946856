#include "base/crc32c.h"

#include <random>
#include <string>

#include <doctest/doctest.h>

namespace tubed {

namespace {

using Crc = std::uint32_t (*)(std::uint32_t, std::string_view);
constexpr Crc kBoth[] = {crc32c, crc32c_portable};

std::string counting(int from, int step) {
  std::string text;
  for (int i = 0; i < 32; ++i) text.push_back(static_cast<char>(from + i * step));
  return text;
}

std::string random_text(std::mt19937& random, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

}  // namespace

TEST_CASE("the checksums match RFC 3720, B.4") {
  for (const Crc crc : kBoth) {
    CHECK(crc(0, "") == 0);
    CHECK(crc(0, "123456789") == 0xE3069283);
    CHECK(crc(0, std::string(32, '\0')) == 0x8A9136AA);
    CHECK(crc(0, std::string(32, '\xff')) == 0x62A8AB43);
    CHECK(crc(0, counting(0, 1)) == 0x46DD794E);
    CHECK(crc(0, counting(31, -1)) == 0x113FDB5C);
    std::string read_command(48, '\0');
    read_command[0] = 0x01;
    read_command[1] = '\xc0';
    read_command[16] = 0x14;
    read_command[22] = 0x04;
    read_command[27] = 0x14;
    read_command[31] = 0x18;
    read_command[32] = 0x28;
    read_command[40] = 0x02;
    CHECK(crc(0, read_command) == 0xD9963A56);
  }
}

TEST_CASE("a checksum continues the checksum of the bytes before") {
  std::mt19937 random(1);
  const std::string text = random_text(random, 100);
  const std::string_view view = text;
  for (const Crc crc : kBoth) {
    const std::uint32_t whole = crc(0, view);
    for (std::size_t cut = 0; cut <= view.size(); ++cut) {
      REQUIRE(crc(crc(0, view.substr(0, cut)), view.substr(cut)) == whole);
    }
  }
}

TEST_CASE("the instruction and the tables agree on any length, alignment and initial value") {
  std::mt19937 random(2);
  const std::string text = random_text(random, 20'000);
  const std::string_view view = text;
  for (std::size_t bytes = 0; bytes < 200; ++bytes) {
    for (std::size_t from = 0; from < 16; ++from) {
      const auto begin = static_cast<std::uint32_t>(random());
      const std::string_view part = view.substr(from, bytes);
      REQUIRE(crc32c(begin, part) == crc32c_portable(begin, part));
    }
  }
  for (int i = 0; i < 200; ++i) {
    const auto begin = static_cast<std::uint32_t>(random());
    const std::size_t from = random() % text.size();
    const std::string_view part = view.substr(from, random() % text.size());
    REQUIRE(crc32c(begin, part) == crc32c_portable(begin, part));
  }
  // Around the blocks of three lanes.
  for (std::size_t blocks = 1; blocks < 4; ++blocks) {
    for (std::size_t bytes = blocks * 768 - 9; bytes < blocks * 768 + 9; ++bytes) {
      const auto begin = static_cast<std::uint32_t>(random());
      REQUIRE(crc32c(begin, view.substr(1, bytes)) ==
              crc32c_portable(begin, view.substr(1, bytes)));
    }
  }
}

TEST_CASE("a byte changed anywhere changes the checksum") {
  std::mt19937 random(3);
  std::string text = random_text(random, 64);
  const std::uint32_t before = crc32c(0, text);
  for (char& c : text) {
    for (int mask = 1; mask < 256; ++mask) {
      c = static_cast<char>(c ^ mask);
      REQUIRE(crc32c(0, text) != before);
      c = static_cast<char>(c ^ mask);
    }
  }
}

}  // namespace tubed
