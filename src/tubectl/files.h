// Files: reads a file or standard input line by line in bounded memory, and syncs a directory to
// make a new file durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/descriptor.h"

namespace tubed::tubectl {

// Owns the file. No other code may read standard input meanwhile. Errors name the input and the
// system's reason.
class LineInput {
 public:
  // "-" is standard input.
  static Result<LineInput> open(const std::string& path);

  // Ends the input at a stop signal: next() then returns no line, though it may be waiting for one.
  // Precondition: client::set_flag_on_stop_signals() was called.
  void end_on_stop() { ends_on_stop_ = true; }

  struct Line {
    std::string_view text;  // without its line end; valid until the next call
    bool too_long =
        false;  // `text` is only the beginning; next() continues with the following line
  };
  // Waits for the next line and returns at most `most` bytes of it; the last line may lack its line
  // end. No value: the input has ended.
  Result<std::optional<Line>> next(std::size_t most);
  // Skips lines up to the line with that number, as if next() had been called.
  Result<void> pass_over(std::uint64_t lines);
  // The number of the line that next() returned last; the first is 1.
  std::uint64_t number() const { return number_; }
  // True if more input is available: next() will hardly wait.
  bool ready() const;
  // How much of a regular file was returned, from 0 to 1; no value for other input.
  std::optional<double> part() const;
  // True for input that can be read only once, such as a pipe.
  bool is_stream() const { return stream_; }
  // Passes the input after the last line to visit(), in pieces. It begins with the part of that
  // line beyond `most`.
  Result<void> rest(const std::function<Result<void>(std::string_view piece)>& visit);

 private:
  LineInput(std::string name, os::Descriptor file);

  int descriptor() const;
  // Appends one piece to input_; invalidates the view of the last line. Returns false at the end of
  // the input.
  Result<bool> read();
  // Moves the remaining bytes, so it is called for each piece and not for each line.
  void drop_taken();
  // Skips the rest of a line that was returned cut.
  Result<void> drop_cut();

  std::string name_;
  os::Descriptor file_;  // empty: standard input
  bool stream_;
  bool ends_on_stop_ = false;
  std::uint64_t bytes_ = 0;  // size of a regular file
  std::uint64_t read_ = 0;   // bytes read
  std::string input_;
  std::size_t taken_ = 0;  // prefix of input_ that was returned
  bool cut_ = false;       // taken_ is within a line
  std::uint64_t number_ = 0;
};

// Writes all of `bytes`. Returns false, with errno set, if that fails.
bool write_all(const os::Descriptor& file, std::string_view bytes);

// Makes the name of `file`, which was just created, survive a power loss.
Result<void> sync_directory_of(const std::string& file);

}  // namespace tubed::tubectl
