// Tests for all zeros at the speed of memory: files of the journal contain megabytes of zeros.
#pragma once

#include <cstring>
#include <string_view>

namespace tubed {

// Also true for no bytes. O(bytes).
inline bool all_zeros(std::string_view bytes) {
  return bytes.empty() || (bytes.front() == '\0' &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace tubed
