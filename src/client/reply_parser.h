// ReplyParser: divides the bytes that a server sends into replies, however reads split them.
//
// A reply is a line, followed by a body if its word is OK, FOUND or RESERVED; the last number of
// such a line is the body's length. [protocol: reserve, peek, stats] The parser refuses everything
// else: a client never takes one command's reply for another's, and never prints control characters
// of a peer that does not use the protocol.
//
// The parser does not own its input. It copies only what it must keep between two calls: a partial
// line, or the line and the kept prefix of a partial body. A complete reply is returned as views
// into the input.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::client {

// The peer sent `line`, which is not a reply of the protocol. The message shows its beginning.
Error not_beanstalk(std::string_view line);

// A reply as views, valid until the parser's next call and only as long as its input.
struct ReplyView {
  std::string_view line;  // without CR LF
  std::string_view body;  // the first max_kept_bytes of the body; empty without a body

  std::string_view word() const { return line.substr(0, line.find(' ')); }
  bool is(std::string_view expected) const { return word() == expected; }
  // The first number after the word, as in INSERTED, RESERVED, FOUND, KICKED; 0 without a number.
  std::uint64_t number() const;
};

// A reply that owns its text.
struct Reply {
  std::string line;
  std::string body;

  std::string_view word() const { return ReplyView{line, {}}.word(); }
  bool is(std::string_view expected) const { return word() == expected; }
  std::uint64_t number() const { return ReplyView{line, {}}.number(); }
};

// A malicious server may announce a body of any length, and a client keeps the whole body in
// memory. This default exceeds a list of a million tubes with usual names, and all but the largest
// jobs; --max-reply changes it.
inline constexpr std::uint64_t kMaxReplyBytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t kMaxReplyBytesCeiling = std::uint64_t{2} << 30;

class ReplyParser {
 public:
  struct Limits {
    std::uint64_t max_body_bytes = kMaxReplyBytes;  // a longer body is an error
    std::size_t max_kept_bytes = std::numeric_limits<std::size_t>::max();  // of each body
  };

  explicit ReplyParser(Limits limits) : limits_(limits) {}

  // Consumes `input` up to the end of the next reply and sets `reply`. Returns false if the reply
  // is incomplete; all input is then consumed. Fails if the peer does not use the protocol, or
  // announces a body that is too long; the parser is then unusable. O(input).
  Result<bool> next(std::string_view& input, ReplyView& reply);
  // If `expected`, the line OK is a reply without a body, as to set-caps; otherwise it is an error.
  void expect_bare_ok(bool expected) { expects_bare_ok_ = expected; }
  // An owning copy of the reply that next() returned last. Moves a body that the parser has
  // collected instead of copying it.
  Reply own(const ReplyView& reply);

 private:
  Result<bool> take_line(std::string_view& input, std::string_view& line);
  // Sets remaining_ if `line` announces a body.
  Result<void> begin_body(std::string_view line);
  // Returns true once the body and its CR LF are complete.
  Result<bool> collect_body(std::string_view& input);

  Limits limits_;
  std::string line_;  // a partial line, or the line of a partial body
  bool expects_bare_ok_ = false;
  bool line_is_partial_ = true;  // line_ still lacks its end
  std::string body_;             // the kept prefix of a partial body
  std::uint64_t remaining_ = 0;  // bytes missing from the body and its CR LF; 0: no body is pending
};

}  // namespace tubed::client
