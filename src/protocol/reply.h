// Replies: what the server says, as bytes waiting to be written.
//
// Text gathers in one buffer; a large body is not copied but stands in line as a reference to the
// job's bytes, so that one gathering write sends both.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "engine/types.h"

namespace tubed::protocol {

// Whole replies of one word. [protocol: Errors, and each command's responses]
namespace word {
inline constexpr std::string_view kBadFormat = "BAD_FORMAT";
inline constexpr std::string_view kBuried = "BURIED";
inline constexpr std::string_view kDeadlineSoon = "DEADLINE_SOON";
inline constexpr std::string_view kDeleted = "DELETED";
inline constexpr std::string_view kDraining = "DRAINING";
inline constexpr std::string_view kExpectedCrlf = "EXPECTED_CRLF";
inline constexpr std::string_view kJobTooBig = "JOB_TOO_BIG";
inline constexpr std::string_view kKicked = "KICKED";
inline constexpr std::string_view kNotFound = "NOT_FOUND";
inline constexpr std::string_view kNotIgnored = "NOT_IGNORED";
inline constexpr std::string_view kOutOfMemory = "OUT_OF_MEMORY";
inline constexpr std::string_view kPaused = "PAUSED";
inline constexpr std::string_view kReleased = "RELEASED";
inline constexpr std::string_view kTimedOut = "TIMED_OUT";
inline constexpr std::string_view kTouched = "TOUCHED";
inline constexpr std::string_view kUnknownCommand = "UNKNOWN_COMMAND";
}  // namespace word

class ReplyBuffer {
 public:
  bool empty() const { return size_ == 0; }
  // Bytes not yet taken, bodies included.
  std::size_t size() const { return size_; }

  // Memory that the buffer itself holds; for tests.
  std::size_t kept_bytes() const { return text_.capacity() + splices_.capacity() * sizeof(Splice); }

  // `word` CRLF
  void line(std::string_view word);
  // `word` SP `number` CRLF, as in INSERTED 1 or WATCHING 2
  void line(std::string_view word, std::uint64_t number);
  // `word` SP `text` CRLF, as in USING default
  void line(std::string_view word, std::string_view text);
  // `word` SP `id` SP `bytes` CRLF body CRLF, as in RESERVED and FOUND
  void job(std::string_view word, JobId id, const Bytes& body);
  // OK SP `bytes` CRLF `block` CRLF
  void block(std::string_view block);
  // The same for a block that comes in parts: its length first, then each part, then its end.
  void begin_block(std::uint64_t bytes) { line("OK", bytes); }
  void block_part(const Bytes& part) { body(part); }
  void end_block() { line(""); }

  // The next bytes to write, in order, as up to pieces.size() runs; returns how many. Valid until
  // the next change.
  std::size_t pieces(std::span<std::string_view> pieces) const;
  // The first of these pieces, or nothing.
  std::string_view front() const;
  // The first `count` bytes were written. Precondition: count <= size().
  void take(std::size_t count);

 private:
  // A body that stands in the text at an offset instead of being copied into it.
  struct Splice {
    std::size_t offset;
    Bytes body;
  };

  void text(std::string_view text);
  void body(const Bytes& body);
  void drop_taken();
  void clear();

  std::string text_;
  std::vector<Splice> splices_;
  std::size_t text_taken_ = 0;
  std::size_t splices_taken_ = 0;
  std::size_t body_taken_ = 0;  // of the first splice that is not taken
  std::size_t size_ = 0;
};

}  // namespace tubed::protocol
