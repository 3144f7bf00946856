// Numbers in their encoding on disk: little-endian, unaligned, on any machine.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

namespace tubed::journal {

// Its own inverse.
template <class T>
constexpr T swap_unless_little(T value) {
  static_assert(std::is_integral_v<T>);
  if constexpr (std::endian::native == std::endian::little) {
    return value;
  } else {
    using Bits = std::make_unsigned_t<T>;
    Bits from = static_cast<Bits>(value);
    Bits swapped = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      swapped = static_cast<Bits>((swapped << 8U) | (from & 0xFFU));
      from = static_cast<Bits>(from >> 8U);
    }
    return static_cast<T>(swapped);
  }
}

// load_little() and store_little() access sizeof(T) bytes at `at`.
template <class T>
T load_little(const char* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return swap_unless_little(value);
}

template <class T>
void store_little(char* at, T value) {
  value = swap_unless_little(value);
  std::memcpy(at, &value, sizeof value);
}

}  // namespace tubed::journal
