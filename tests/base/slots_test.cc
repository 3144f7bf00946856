#include "base/slots.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include <doctest/doctest.h>

namespace tubed {

namespace {

struct Taken {
  void* slot;
  std::size_t bytes;
  unsigned char mark;
};

bool is_whole(const Taken& taken) {
  const auto* const bytes = static_cast<const unsigned char*>(taken.slot);
  return std::all_of(bytes, bytes + taken.bytes,
                     [&](unsigned char byte) { return byte == taken.mark; });
}

}  // namespace

TEST_CASE("slots of every size are aligned, and never lie over each other") {
  std::vector<Taken> all;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t bytes = 1; bytes <= kMaxSlotBytes; ++bytes) {
      const Taken taken{.slot = take_slot(bytes),
                        .bytes = bytes,
                        .mark = static_cast<unsigned char>(all.size() % 251)};
      REQUIRE(taken.slot != nullptr);
      CHECK(reinterpret_cast<std::uintptr_t>(taken.slot) % 8 == 0);
      std::memset(taken.slot, taken.mark, bytes);
      all.push_back(taken);
    }
  }
  for (const Taken& taken : all) CHECK(is_whole(taken));
  for (const Taken& taken : all) give_slot(taken.slot, taken.bytes);
}

TEST_CASE("a random life: what is held stays as it was written") {
  std::vector<Taken> held;
  std::uint32_t state = 1;
  const auto next = [&state](std::uint32_t bound) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % bound;
  };
  for (int step = 0; step < 200'000; ++step) {
    // It grows, and shrinks, and grows again.
    const bool growing = step / 20'000 % 2 == 0;
    if (held.empty() || next(10) < (growing ? 7U : 3U)) {
      const std::size_t bytes = 1 + next(200);
      const auto mark = static_cast<unsigned char>(step % 251);
      held.push_back({take_slot(bytes), bytes, mark});
      std::memset(held.back().slot, mark, bytes);
    } else {
      std::swap(held[next(static_cast<std::uint32_t>(held.size()))], held.back());
      REQUIRE(is_whole(held.back()));
      give_slot(held.back().slot, held.back().bytes);
      held.pop_back();
    }
  }
  for (const Taken& taken : held) give_slot(taken.slot, taken.bytes);
}

TEST_CASE("many small objects cost little more than their bytes, and all of it comes back") {
  const std::size_t before = slot_memory();
  constexpr std::size_t kCount = 100'000;
  for (const std::size_t bytes : {std::size_t{24}, std::size_t{64}, std::size_t{160}}) {
    CAPTURE(bytes);
    std::vector<void*> slots;
    for (std::size_t i = 0; i < kCount; ++i) slots.push_back(take_slot(bytes));
    CHECK(slot_memory() - before < kCount * bytes * 102 / 100);
    // In an order of its own: every third, then the others.
    for (std::size_t first = 0; first < 3; ++first) {
      for (std::size_t i = first; i < kCount; i += 3) give_slot(slots[i], bytes);
    }
    CHECK(slot_memory() - before <= 4 * 64 * 1024);
  }
}

TEST_CASE("a slot that was given back is the next one to be had") {
  void* const kept = take_slot(40);
  void* const slot = take_slot(40);
  give_slot(slot, 40);
  CHECK(take_slot(40) == slot);
  give_slot(slot, 40);
  give_slot(kept, 40);
}

TEST_CASE("a standard container may have its nodes in slots") {
  const std::size_t before = slot_memory();
  {
    using Allocator = SlotAllocator<std::pair<const int, int>>;
    std::unordered_map<int, int, std::hash<int>, std::equal_to<>, Allocator> map;
    for (int i = 0; i < 10'000; ++i) map[i] = i;
    CHECK(slot_memory() - before >= 10'000 * sizeof(int));
    CHECK(map.at(9'999) == 9'999);
  }
  CHECK(slot_memory() - before <= 64 * 1024);
}

}  // namespace tubed
