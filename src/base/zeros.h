// Checks for zeros at the speed of memory: files of the journal contain megabytes of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tubed {

// True if all bytes are zero or `bytes` is empty. O(bytes).
inline bool all_zeros(std::string_view bytes) {
  if (bytes.size() < sizeof(std::uint64_t)) {  // for example between the fields of a record
    char any = 0;
    for (const char byte : bytes) any = static_cast<char>(any | byte);
    return any == 0;
  }
  return bytes.front() == '\0' &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace tubed
