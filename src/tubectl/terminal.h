// Terminal: output for users: safe text, colours, tables, a progress line, a question.
//
// Nothing here writes to standard output; the functions return text for it. Text from the server
// passes through escaped() before it reaches a terminal, since a job's body may contain escape
// sequences that change the terminal's state.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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

// A bar on standard error, updated several times a second; none if that is not a terminal, or for a
// short run.
class Progress {
 public:
  // `label`: such as "clearing". `total` is 0 if unknown.
  Progress(std::string label, std::uint64_t total);
  // Erases the bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  std::uint64_t total_;
  bool wanted_;
  bool shown_ = false;
  Clock::time_point begin_;
  Clock::time_point next_;
};

// A changing line on standard error, such as the condition of a wait; none if that is not a
// terminal.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // `text` is a single line, cut to the width of the terminal.
  void show(std::string_view text);
  // Erases the line, before other output is printed.
  void clear();

 private:
  bool wanted_;
  std::string shown_;
};

// Asks on the terminal; true if the answer is "y" or "yes". Fails without a terminal.
Result<bool> confirm(const std::string& question);

}  // namespace tubed::tubectl
