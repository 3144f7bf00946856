#include "base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__AARCH64EL__) && (defined(__ARM_FEATURE_CRC32) || !defined(__clang__))
// Clang declares the functions only when it compiles for processors that all have them.
#define TUBED_ARM_CRC
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tubed {

namespace {

constexpr std::size_t kStep = 8;  // bytes processed at once

// --- Tables, eight bytes per step

// tables[k][b]: the checksum of the byte b followed by k zero bytes.
using Tables = std::array<std::array<std::uint32_t, 256>, kStep>;

constexpr Tables make_tables() {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // bits reversed
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t zeros = 1; zeros < kStep; ++zeros) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[zeros - 1][byte];
      tables[zeros][byte] = (crc >> 8) ^ tables[0][crc & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint32_t step_with_tables(std::uint32_t crc, const char* at) {
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < kStep; ++i) {
    const std::uint32_t mixed = i < 4 ? crc >> (8 * i) : 0;
    const std::size_t byte = (static_cast<unsigned char>(at[i]) ^ mixed) & 0xFF;
    next ^= kTables[kStep - 1 - i][byte];
  }
  return next;
}

// --- The processor's instruction

#if defined(__x86_64__)

#define TUBED_WITH_CRC __attribute__((target("sse4.2")))

// The compiler's runtime detects the processor once, before main(); this only tests a bit.
inline bool has_instruction() {
  return __builtin_cpu_supports("sse4.2") != 0;
}

TUBED_WITH_CRC inline std::uint64_t add_step(std::uint64_t crc, std::uint64_t bytes) {
  return _mm_crc32_u64(crc, bytes);
}

TUBED_WITH_CRC inline std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) {
  return _mm_crc32_u8(crc, byte);
}

#elif defined(TUBED_ARM_CRC)

#define TUBED_WITH_CRC __attribute__((target("+crc")))

// The first processors of this architecture lack the instruction.
inline bool has_instruction() {
  static const bool has = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  return has;
}

TUBED_WITH_CRC inline std::uint64_t add_step(std::uint64_t crc, std::uint64_t bytes) {
  return __crc32cd(static_cast<std::uint32_t>(crc), bytes);
}

TUBED_WITH_CRC inline std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) {
  return __crc32cb(crc, byte);
}

#endif

#if defined(TUBED_WITH_CRC)

// --- Three lanes

// An instruction waits some cycles for the result of the one before, but the processor can begin
// one in each cycle. So three lanes of a block are processed at once. The checksum of the block is
// the sum of the lanes' checksums, each moved on by the lanes after it.
constexpr std::size_t kLane = 256;  // bytes

// moved[k][b]: the checksum with the byte b in place k, moved on by a lane of zero bytes.
using Moved = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr Moved make_moved() {
  Moved moved{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t crc = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < kLane; ++i) crc = (crc >> 8) ^ kTables[0][crc & 0xFF];
    moved[bit / 8][std::size_t{1} << (bit % 8)] = crc;
  }
  // A checksum is linear: that of several bits is the sum of theirs.
  for (auto& place : moved) {
    for (std::size_t byte = 1; byte < place.size(); ++byte) {
      const std::size_t lowest = byte & (~byte + 1);
      if (byte != lowest) place[byte] = place[byte - lowest] ^ place[lowest];
    }
  }
  return moved;
}

constexpr Moved kMoved = make_moved();

std::uint32_t moved_by_a_lane(std::uint32_t crc) {
  std::uint32_t moved = 0;
  for (std::size_t i = 0; i < kMoved.size(); ++i) moved ^= kMoved[i][(crc >> (8 * i)) & 0xFF];
  return moved;
}

std::uint64_t step_at(const char* at) {
  std::uint64_t step = 0;
  std::memcpy(&step, at, kStep);
  return step;
}

TUBED_WITH_CRC std::uint64_t add_block(std::uint64_t first, const char* at) {
  std::uint64_t second = 0;
  std::uint64_t third = 0;
  for (std::size_t i = 0; i < kLane; i += kStep) {
    first = add_step(first, step_at(at + i));
    second = add_step(second, step_at(at + kLane + i));
    third = add_step(third, step_at(at + 2 * kLane + i));
  }
  const auto two =
      moved_by_a_lane(static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
  return moved_by_a_lane(two) ^ static_cast<std::uint32_t>(third);
}

TUBED_WITH_CRC std::uint32_t crc32c_with_instruction(std::uint32_t crc, std::string_view bytes) {
  std::uint64_t state = ~crc;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 3 * kLane; at += 3 * kLane, left -= 3 * kLane) state = add_block(state, at);
  for (; left >= kStep; at += kStep, left -= kStep) state = add_step(state, step_at(at));
  auto rest = static_cast<std::uint32_t>(state);
  for (; left > 0; ++at, --left) rest = add_byte(rest, static_cast<std::uint8_t>(*at));
  return ~rest;
}

#endif

}  // namespace

std::uint32_t crc32c(std::uint32_t crc, std::string_view bytes) {
#if defined(TUBED_WITH_CRC)
  if (has_instruction()) return crc32c_with_instruction(crc, bytes);
#endif
  return crc32c_portable(crc, bytes);
}

std::uint32_t crc32c_portable(std::uint32_t crc, std::string_view bytes) {
  crc = ~crc;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= kStep; at += kStep, left -= kStep) crc = step_with_tables(crc, at);
  for (; left > 0; ++at, --left) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(*at)) & 0xFF];
  }
  return ~crc;
}

}  // namespace tubed
