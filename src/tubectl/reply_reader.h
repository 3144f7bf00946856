// ReplyReader: cuts what a server sends into replies, however it arrives.
//
// It keeps a line that has begun and the head of a body, and no more, so that its memory is
// bounded. Bodies are only those of RESERVED: nothing else with a body is asked for on such a
// connection.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/types.h"

namespace tubed::tubectl {

// What came instead of a reply: its beginning is told.
Error no_beanstalk(std::string_view line);

struct Reply {
  enum class Kind : std::uint8_t { inserted, reserved, deleted, other };

  Kind kind = Kind::other;
  JobId id = 0;           // of RESERVED
  std::string_view line;  // without CR LF; of RESERVED only that word
  std::string_view head;  // of RESERVED: the first kHeadBytes of the body, or all of it
};

class ReplyReader {
 public:
  static constexpr std::size_t kHeadBytes = 16;

  // Gives it what was received. It stays where it is until next() has returned false.
  void feed(std::string_view input) { input_ = input; }

  // The next whole reply; valid until the next call. False: more input is needed. An error: this is
  // no beanstalk.
  Result<bool> next(Reply& reply);

 private:
  // Each consumes input and says whether its part has come as a whole.
  Result<bool> take_line(Reply& reply);
  Result<bool> take_body();
  Result<void> begin_body(std::string_view arguments);

  std::string_view input_;
  std::string begun_;  // a line whose end has not come
  std::string line_;   // a line that came in pieces
  JobId id_ = 0;
  std::uint64_t body_left_ = 0;  // with its CR LF; 0: no body is under way
  std::array<char, kHeadBytes> head_{};
  std::size_t head_bytes_ = 0;
};

}  // namespace tubed::tubectl
