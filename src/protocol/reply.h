// ReplyBuffer: the replies to one client that are not sent yet, as bytes.
//
// Text is appended to one buffer. A large body is not copied: the buffer keeps a reference to the
// job's bytes and their offset in the text (a splice), and writev(2) sends both in order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "facts/types.h"

namespace tubed::protocol {

// Whole replies of one word. [protocol: Errors, and each command's responses]
namespace word {
inline constexpr std::string_view kAuthenticated = "AUTHENTICATED";
inline constexpr std::string_view kBadFormat = "BAD_FORMAT";
inline constexpr std::string_view kBuried = "BURIED";
inline constexpr std::string_view kDeadlineSoon = "DEADLINE_SOON";
inline constexpr std::string_view kDeleted = "DELETED";
inline constexpr std::string_view kDenied = "DENIED";
inline constexpr std::string_view kDraining = "DRAINING";
inline constexpr std::string_view kDrained = "DRAINED";
inline constexpr std::string_view kExpectedCrlf = "EXPECTED_CRLF";
inline constexpr std::string_view kInternalError = "INTERNAL_ERROR";
inline constexpr std::string_view kJobTooBig = "JOB_TOO_BIG";
inline constexpr std::string_view kKicked = "KICKED";
inline constexpr std::string_view kMoved = "MOVED";
inline constexpr std::string_view kNotDraining = "NOT_DRAINING";
inline constexpr std::string_view kNotFound = "NOT_FOUND";
inline constexpr std::string_view kNotIgnored = "NOT_IGNORED";
inline constexpr std::string_view kNotReloaded = "NOT_RELOADED";
inline constexpr std::string_view kOutOfMemory = "OUT_OF_MEMORY";
inline constexpr std::string_view kPaused = "PAUSED";
inline constexpr std::string_view kReleased = "RELEASED";
inline constexpr std::string_view kTimedOut = "TIMED_OUT";
inline constexpr std::string_view kTouched = "TOUCHED";
inline constexpr std::string_view kUnauthorized = "UNAUTHORIZED";
inline constexpr std::string_view kUnknownCommand = "UNKNOWN_COMMAND";
}  // namespace word

class ReplyBuffer {
 public:
  bool empty() const { return size_ == 0; }
  // Bytes not sent yet, including bodies.
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
  // The same with SP `tube` at the end of the line [set-caps]
  void job(std::string_view word, JobId id, const Bytes& body, std::string_view tube);
  // OK SP `bytes` CRLF and the block that write(std::string& text) appends to the text of the
  // buffer, and CRLF. O(block).
  template <class Write>
  void block(const Write& write) {
    const std::size_t begin = begin_text_block();
    write(text_);
    end_text_block(begin);
  }
  // The text, as it is.
  void text(std::string_view text);
  // A block in parts: its length, then each part, then its end.
  void begin_block(std::uint64_t bytes) { line("OK", bytes); }
  void block_part(const Bytes& part) { body(part); }
  void end_block() { line(""); }

  // Sets up to pieces.size() pieces to the next bytes to send, in order, and returns their number.
  // They are valid until the buffer changes.
  std::size_t pieces(std::span<std::string_view> pieces) const;
  // The first of these pieces; empty if the buffer is.
  std::string_view front() const;
  // Removes the first `count` bytes, which were sent. Precondition: count <= size().
  void take(std::size_t count);

 private:
  // A body to send at an offset of the text.
  struct Splice {
    std::size_t offset;
    Bytes body;
  };

  void body(const Bytes& body);
  // Returns the offset of the block, whose length is not known yet.
  std::size_t begin_text_block();
  void end_text_block(std::size_t begin);
  void drop_taken();
  void clear();

  std::string text_;
  std::vector<Splice> splices_;
  std::size_t text_taken_ = 0;
  std::size_t splices_taken_ = 0;
  std::size_t body_taken_ = 0;  // bytes of the first splice that is not fully sent
  std::size_t size_ = 0;
};

}  // namespace tubed::protocol
