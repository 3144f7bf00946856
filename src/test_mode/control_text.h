// ControlInput, ControlOutput: the text of a control connection, whose lines end with LF.
//
// A person or a short script that writes to standard input does not write CR LF. The input filter
// makes CR LF of LF and of CR LF at the end of a line, and the output filter makes LF of CR LF.
// Both leave bodies as they are: the input filter knows the commands that have a body, the output
// filter the replies. They take their text in pieces that may be cut at any byte, and hold back at
// most kMostHeld bytes of an unfinished line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tubed::test_mode {

// More than the longest line of a command.
inline constexpr std::size_t kMostHeld = 32 * 1024;

class ControlInput {
 public:
  // Converts these bytes for a conversation and appends them to `out`. O(bytes).
  void take(std::string_view bytes, std::string& out);

 private:
  enum class Stage : std::uint8_t { line, body, body_end, long_line };

  std::size_t take_line(std::string_view bytes, std::string& out);
  std::size_t take_body_end(std::string_view bytes, std::string& out);

  Stage stage_ = Stage::line;
  std::string held_;
  std::uint64_t body_left_ = 0;
};

class ControlOutput {
 public:
  // Converts these bytes of replies for the control connection and appends them to `out`. O(bytes).
  void take(std::string_view bytes, std::string& out);

 private:
  std::size_t take_line(std::string_view bytes, std::string& out);

  std::string held_;
  std::uint64_t body_left_ = 0;
  bool in_body_ = false;
};

}  // namespace tubed::test_mode
