// Tests for all zeros at the speed of memory: files of the journal contain megabytes of zeros.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tubed {

// Also true for no bytes. O(bytes).
inline bool all_zeros(std::string_view bytes) {
  if (bytes.size() < sizeof(std::uint64_t)) {  // as between the fields of each record
    char any = 0;
    for (const char byte : bytes) any = static_cast<char>(any | byte);
    return any == 0;
  }
  return bytes.front() == '\0' &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace tubed
