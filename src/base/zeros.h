// Whether memory is all zeros, as fast as memory is read: files of a journal have megabytes of
// them.
#pragma once

#include <cstring>
#include <string_view>

namespace tubed {

// True for no bytes. O(bytes).
inline bool all_zeros(std::string_view bytes) {
  return bytes.empty() || (bytes.front() == '\0' &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace tubed
