#include "base/slab_pool.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include <doctest/doctest.h>

namespace tubed {

namespace {

struct Taken {
  void* cell;
  std::size_t bytes;
  unsigned char mark;
};

bool is_whole(const Taken& taken) {
  const auto* const bytes = static_cast<const unsigned char*>(taken.cell);
  return std::all_of(bytes, bytes + taken.bytes,
                     [&](unsigned char byte) { return byte == taken.mark; });
}

}  // namespace

TEST_CASE("cells of every size are aligned and do not overlap") {
  std::vector<Taken> all;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t bytes = 1; bytes <= SlabPool::kMaxBytes; ++bytes) {
      const Taken taken{.cell = SlabPool::allocate(bytes),
                        .bytes = bytes,
                        .mark = static_cast<unsigned char>(all.size() % 251)};
      REQUIRE(taken.cell != nullptr);
      CHECK(reinterpret_cast<std::uintptr_t>(taken.cell) % 8 == 0);
      std::memset(taken.cell, taken.mark, bytes);
      all.push_back(taken);
    }
  }
  for (const Taken& taken : all) CHECK(is_whole(taken));
  for (const Taken& taken : all) SlabPool::free(taken.cell, taken.bytes);
}

TEST_CASE("cells keep their contents in a random sequence of allocations") {
  std::vector<Taken> held;
  std::uint32_t state = 1;
  const auto next = [&state](std::uint32_t bound) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % bound;
  };
  for (int step = 0; step < 200'000; ++step) {
    // The number of cells grows and shrinks by turns.
    const bool growing = step / 20'000 % 2 == 0;
    if (held.empty() || next(10) < (growing ? 7U : 3U)) {
      const std::size_t bytes = 1 + next(200);
      const auto mark = static_cast<unsigned char>(step % 251);
      held.push_back({SlabPool::allocate(bytes), bytes, mark});
      std::memset(held.back().cell, mark, bytes);
    } else {
      std::swap(held[next(static_cast<std::uint32_t>(held.size()))], held.back());
      REQUIRE(is_whole(held.back()));
      SlabPool::free(held.back().cell, held.back().bytes);
      held.pop_back();
    }
  }
  for (const Taken& taken : held) SlabPool::free(taken.cell, taken.bytes);
}

TEST_CASE(
    "many small objects cost little more than their bytes, and freeing them returns all memory") {
  const std::size_t before = SlabPool::memory();
  constexpr std::size_t kCount = 100'000;
  for (const std::size_t bytes : {std::size_t{24}, std::size_t{64}, std::size_t{160}}) {
    CAPTURE(bytes);
    std::vector<void*> cells;
    for (std::size_t i = 0; i < kCount; ++i) cells.push_back(SlabPool::allocate(bytes));
    CHECK(SlabPool::memory() - before < kCount * bytes * 102 / 100);
    // Frees every third cell, then the others.
    for (std::size_t first = 0; first < 3; ++first) {
      for (std::size_t i = first; i < kCount; i += 3) SlabPool::free(cells[i], bytes);
    }
    CHECK(SlabPool::memory() - before <= 4 * 64 * 1024);
  }
}

TEST_CASE("the cell freed last is allocated next") {
  void* const kept = SlabPool::allocate(40);
  void* const cell = SlabPool::allocate(40);
  SlabPool::free(cell, 40);
  CHECK(SlabPool::allocate(40) == cell);
  SlabPool::free(cell, 40);
  SlabPool::free(kept, 40);
}

TEST_CASE("a standard container can allocate its nodes in slabs") {
  const std::size_t before = SlabPool::memory();
  {
    using Allocator = SlabAllocator<std::pair<const int, int>>;
    std::unordered_map<int, int, std::hash<int>, std::equal_to<>, Allocator> map;
    for (int i = 0; i < 10'000; ++i) map[i] = i;
    CHECK(SlabPool::memory() - before >= 10'000 * sizeof(int));
    CHECK(map.at(9'999) == 9'999);
  }
  CHECK(SlabPool::memory() - before <= 64 * 1024);
}

}  // namespace tubed
