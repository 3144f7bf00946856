// Terminal: output for users: safe text, colours, tables, a progress line, a question.
//
// Nothing here writes to standard output; the functions return text for it. Text from the server
// passes through escaped() before it reaches a terminal, since a job's body may contain escape
// sequences that change the terminal's state.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/utf8.h"

namespace tubed::tubectl {

// Makes untrusted text safe for a terminal: control characters, and bytes that are not UTF-8,
// become escapes such as \r or \x1b. Line ends and tabs are kept.
std::string escaped(std::string_view text);
// As escaped(), for a part of a line: line ends and tabs become \n and \t.
std::string one_line(std::string_view text);

// Colours are used on a terminal unless the user has set NO_COLOR.
enum class Style : std::uint8_t { plain, bold, dim, red, green, yellow, cyan };

// True if the user has set NO_COLOR.
bool colours_unwanted();

// Decides once, for one descriptor, whether text is coloured. If not, text is returned unchanged.
class Paint {
 public:
  // Uses colours if `descriptor` is a terminal that shows them and the user has not set NO_COLOR.
  static Paint for_descriptor(int descriptor);

  std::string operator()(Style style, std::string_view text) const;

 private:
  explicit Paint(bool paints) : paints_(paints) {}
  bool paints_;
};

// Rows in columns, each as wide as its widest cell.
class TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;  // aligned right, for numbers
  };
  struct Cell {
    std::string text;
    Style style = Style::plain;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Precondition: the row has a cell for each column.
  void add(std::vector<Cell> row);
  // The titles and the rows, a line each.
  std::string text(const Paint& paint) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// A body for standard output: its bytes, followed by a line end if it is one of several. On a
// terminal it is escaped() and ends with a line end, unless `raw`.
std::string shown_body(std::string body, bool several, bool raw);

// A changing line on standard error, such as the condition of a wait; none if that is not a
// terminal. print() and fail() erase it before they write.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool is_wanted() const { return wanted_; }
  // `text` is a single line, cut to the width of the terminal.
  void show(std::string_view text);
  // Erases the line, before other output is printed.
  void clear();
  // Erases the line that is shown, if any.
  static void clear_shown();

 private:
  bool wanted_;
  std::string shown_;
};

// How far long work is, as a StatusLine that is updated several times a second; none for a short
// run.
class Progress {
 public:
  // `label`: such as "clearing". `total` is 0 if unknown.
  Progress(std::string label, std::uint64_t total)
      : label_(std::move(label)),
        total_(total),
        begin_(Clock::now()),
        next_(begin_ + kFirstShown) {}

  // `part`, from 0 to 1: how much of the work is done, if that is known in another way than by the
  // total. Makes no system call until the next update is due.
  void show(std::uint64_t done, std::optional<double> part = std::nullopt);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kFirstShown{500};

  std::string label_;
  std::uint64_t total_;
  StatusLine line_;
  Clock::time_point begin_;
  Clock::time_point next_;
};

// The line of a Progress: "clearing 500 of 2000 [=====     ] 25 %, 100/s, 15s left". `total` is 0
// and `part` is empty if unknown.
std::string progress_text(std::string_view label, std::uint64_t done, std::uint64_t total,
                          std::optional<double> part, double seconds);

// Asks on the terminal; true if the answer is "y" or "yes". Fails without a terminal.
Result<bool> confirm(const std::string& question);

}  // namespace tubed::tubectl
