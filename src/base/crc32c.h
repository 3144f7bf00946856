// CRC-32C (Castagnoli), as RFC 3720 defines it: the checksum of all that is kept on disk.
#pragma once

#include <cstdint>
#include <string_view>

namespace tubed {

// Of `bytes` behind those that gave `crc`; 0 to begin: crc32c(crc32c(0, a), b) == crc32c(0, ab).
// Uses the processor's own instruction where there is one.
std::uint32_t crc32c(std::uint32_t crc, std::string_view bytes);

// The same, with tables; for tests.
std::uint32_t crc32c_portable(std::uint32_t crc, std::string_view bytes);

}  // namespace tubed
