// Text: the parts of a frame: short numbers, graphs, and lines of styled spans.
//
// A line knows its width in columns. Text from the server passes through clean(), which keeps it
// from moving the cursor or taking other columns than counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tubectl/terminal.h"

namespace tubed::tubectl::top {

// At most five characters: 9999, 12.3k, 4.5M.
std::string shortened(std::uint64_t number);
// At most five characters, with tenths for small rates: 0, 0.5, 120, 12.3k.
std::string shortened_rate(double rate);

std::string bytes_in_words(std::uint64_t bytes);      // 512 B, 1.5 GiB
std::string seconds_in_words(std::uint64_t seconds);  // 00:12:05, 3 d 04:05

// The number of columns that UTF-8 text takes.
std::size_t width_of(std::string_view text);
// The part of `text` that fits, as a terminal of this locale can show it, with '?' in place of
// other characters.
std::string clean(std::string_view text, std::size_t columns);

// Uses block characters where the locale has them, else ASCII.
class Glyphs {
 public:
  explicit Glyphs(bool blocks) : blocks_(blocks) {}

  // The last of `values`, one per column, the newest on the right, scaled to the largest.
  std::string sparkline(std::span<const float> values, std::size_t columns) const;
  struct Bar {
    std::string filled;
    std::string rest;
  };
  // `part`: 0 to 1.
  Bar bar(double part, std::size_t columns) const;
  // As clean(), with a sign at the end if the text was cut.
  std::string shorten(std::string_view text, std::size_t columns) const;
  std::string_view ascending() const { return blocks_ ? "▴" : "^"; }
  std::string_view descending() const { return blocks_ ? "▾" : "v"; }
  std::string_view selected() const { return blocks_ ? "▸" : ">"; }

 private:
  bool blocks_;
};

struct Span {
  std::string text;
  Style style = Style::plain;
  bool reversed = false;
};

class Line {
 public:
  Line() = default;
  explicit Line(std::string text, Style style = Style::plain) { add(std::move(text), style); }

  void add(std::string text, Style style = Style::plain);
  // Precedes the text with blanks: it ends `columns` to the right of the current end.
  void add_right(std::string text, std::size_t columns, Style style = Style::plain);
  // Adds blanks up to that column.
  void pad_to(std::size_t column);
  void append(const Line& other);

  const std::vector<Span>& spans() const { return spans_; }
  std::size_t width() const { return width_; }
  std::string text() const;
  // Shows everything added so far as a bar of one colour.
  void reverse();

 private:
  std::vector<Span> spans_;
  std::size_t width_ = 0;
};

// The first items that fit, separated by two blanks.
Line join(const std::vector<Line>& items, std::size_t columns);

}  // namespace tubed::tubectl::top
