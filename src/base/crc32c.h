// CRC-32C (Castagnoli, RFC 3720): the checksum of all data in the journal.
#pragma once

#include <cstdint>
#include <string_view>

namespace tubed {

// Extends the checksum `crc` by `bytes`; the initial value is 0: crc32c(crc32c(0, a), b) ==
// crc32c(0, ab). Uses the processor's CRC instruction if it has one.
std::uint32_t crc32c(std::uint32_t crc, std::string_view bytes);

// The same without the instruction, for tests.
std::uint32_t crc32c_portable(std::uint32_t crc, std::string_view bytes);

}  // namespace tubed
