// Terminal: output for people: safe text, colours, tables, a progress line, a question.
//
// Nothing here writes to standard output: the functions return text for it. Text
// from the server passes through escaped() before it reaches a terminal, since a job's body may
// contain escape sequences that change the terminal's state.
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

// --- Text

// Text of others for a terminal, which would obey some of it: control characters, and bytes that
// are no UTF-8, become \r or \x1b. Line ends and tabs stay.
std::string escaped(std::string_view text);
// The same for a part of a line: line ends and tabs become \n and \t.
std::string one_line(std::string_view text);

// --- Colours

// Colours are for a terminal whose user has not set NO_COLOR.
enum class Style : std::uint8_t { plain, bold, dim, red, green, yellow, cyan };

// That user did.
bool colours_unwanted();

// Decides once, for one descriptor, whether text is coloured; the text is returned unchanged if
// not.
class Paint {
 public:
  // Paints if `descriptor` is such a terminal.
  static Paint for_descriptor(int descriptor);

  std::string operator()(Style style, std::string_view text) const;

 private:
  explicit Paint(bool paints) : paints_(paints) {}
  bool paints_;
};

// --- Tables

// Rows in columns, each as wide as its widest cell.
class TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;  // numbers
  };
  struct Cell {
    std::string text;
    Style style = Style::plain;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Precondition: as many cells as columns.
  void add(std::vector<Cell> row);
  // The titles and the rows, a line each.
  std::string text(const Paint& paint) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// --- Bodies, progress and questions

// A body as standard output is to have it: its bytes, and a line end if it is one of several. A
// terminal gets escaped() text that ends its line, unless `raw`.
std::string shown_body(std::string body, bool several, bool raw);

// A bar on standard error, several times a second; none if that is no terminal, or for a short run.
class Progress {
 public:
  // `label`: "clearing". `total` 0: the number is not known.
  Progress(std::string label, std::uint64_t total);
  // Takes the bar away.
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

// A line on standard error that changes, such as what is waited for; none if that is no terminal.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // `text` is of one line; its beginning is shown if the terminal has fewer columns.
  void show(std::string_view text);
  // Takes the line away before something else is printed.
  void clear();

 private:
  bool wanted_;
  std::string shown_;
};

// Asks on the terminal, and waits for "y" or "yes". An error: there is no terminal to ask on.
Result<bool> confirm(const std::string& question);

}  // namespace tubed::tubectl
