// Files: lines of a file or of standard input, read one by one in bounded memory; and the sync of a
// directory that makes a new file durable.
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

// Owns the file. Not for standard input that other code reads as well. An Error of its functions
// names the input and the system's reason.
class LineInput {
 public:
  // "-" is standard input.
  static Result<LineInput> open(const std::string& path);

  struct Line {
    std::string_view text;  // without its end; valid until the next call
    bool too_long =
        false;  // `text` is only the beginning; next() continues with the following line
  };
  // The next line, of at most `most` bytes; the last line may lack its end. Waits for it. Nothing:
  // the input has ended.
  Result<std::optional<Line>> next(std::size_t most);
  // As if next() had been called until the line with that number.
  Result<void> pass_over(std::uint64_t lines);
  // The number of the line that next() gave last; the first is 1.
  std::uint64_t number() const { return number_; }
  // next() will not wait for long: there is more.
  bool ready() const;
  // True for input that can be read only once, such as a pipe.
  bool is_stream() const { return stream_; }
  // Passes visit() the input after the last line, in pieces, first the part of that line beyond
  // `most`.
  Result<void> rest(const std::function<Result<void>(std::string_view piece)>& visit);

 private:
  LineInput(std::string name, os::Descriptor file);

  int descriptor() const;
  // False: it has ended. Appends one piece to input_; invalidates the view of the last line.
  Result<bool> read();
  // Costs the bytes that remain, so it is called once for each piece and not for each line.
  void drop_taken();
  // Passes over what the last line had beyond its `most`.
  Result<void> drop_cut();

  std::string name_;
  os::Descriptor file_;  // none: standard input
  bool stream_;
  std::string input_;
  std::size_t taken_ = 0;  // of input_
  bool cut_ = false;       // taken_ is within a line
  std::uint64_t number_ = 0;
};

// After it the name of `file`, which was just created, survives a power loss.
Result<void> sync_directory_of(const std::string& file);

}  // namespace tubed::tubectl
