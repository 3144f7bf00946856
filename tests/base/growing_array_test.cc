#include "base/growing_array.h"

#include <cstdint>

#include <doctest/doctest.h>

namespace tubed {

TEST_CASE("an array keeps its values while it grows and shrinks") {
  GrowingArray<std::uint64_t> array;
  CHECK(array.empty());
  CHECK(array.capacity() == 0);
  constexpr std::uint64_t kMany = 300'000;  // large enough to have a mapping of its own
  for (std::uint64_t i = 0; i < kMany; ++i) array.push_back(i * i);
  REQUIRE(array.size() == kMany);
  CHECK(array.capacity() >= kMany);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kMany; ++i) wrong += array[i] != i * i ? 1 : 0;
  CHECK(wrong == 0);
  CHECK(array.front() == 0);
  while (array.size() > 10) array.pop_back();
  array.set_capacity(16);
  CHECK(array.capacity() == 16);
  CHECK(array.back() == 81);
  array[9] = 5;
  CHECK(array.back() == 5);
  CHECK(array.end() - array.begin() == 10);
}

TEST_CASE("an array can be moved") {
  GrowingArray<std::uint64_t> array;
  array.push_back(7);
  GrowingArray<std::uint64_t> other(std::move(array));
  CHECK(other.size() == 1);
  array = std::move(other);
  CHECK(array.front() == 7);
  CHECK(other.empty());
}

TEST_CASE("an array that cannot grow throws and stays unchanged") {
  GrowingArray<std::uint64_t> array;
  array.push_back(7);
  CHECK_THROWS_AS(array.set_capacity(SIZE_MAX / 16), std::bad_alloc);
  CHECK(array.size() == 1);
  CHECK(array.front() == 7);
}

}  // namespace tubed
