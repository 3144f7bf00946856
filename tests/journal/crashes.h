// Shared by the crash tests: how many crashes to simulate, and when.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>

#include "tests/journal/test_disk.h"

namespace tubed::journal {

// Returns the number in an environment variable.
inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* wanted = std::getenv(variable);
  return wanted == nullptr ? otherwise : std::strtoull(wanted, nullptr, 10);
}

inline std::uint64_t crashes_wanted(std::uint64_t share) {
  return number_from("TUBED_CRASHES", 20'000) / share;
}

template <class T, std::size_t kCount>
T one_of(Random& random, const std::array<T, kCount>& choices) {
  return choices[random() % kCount];
}

// Switches the machine off after some steps: few, to hit an operation that has just begun, or many.
inline void set_crash(TestDisk& disk, Random& random) {
  disk.crash_at(disk.steps() +
                random() % one_of(random, std::array<std::uint64_t, 3>{10, 100, 600}));
}

}  // namespace tubed::journal
