// Text: the parts of a frame: short numbers, graphs, and lines of styled spans.
//
// A line knows its width in columns. Text from the server passes through clean(), so that it
// neither moves the cursor nor takes other columns than are counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tubectl/terminal.h"

namespace tubed::tubectl::top {

// --- Numbers, at most five characters each

// 9999, 12.3k, 4.5M.
std::string shortened(std::uint64_t number);
// The same for what happens a second, with a tenth where it is little: 0, 0.5, 120, 12.3k.
std::string shortened_rate(double rate);

std::string bytes_in_words(std::uint64_t bytes);      // 512 B, 1.5 GiB
std::string seconds_in_words(std::uint64_t seconds);  // 00:12:05, 3 d 04:05

// --- Text that the server or a client of it wrote

// The columns that UTF-8 text takes.
std::size_t width_of(std::string_view text);
// As much of `text` as fits, as a terminal of this locale can show it: '?' for what it cannot.
std::string clean(std::string_view text, std::size_t columns);

// --- Graphs

// Blocks where the locale has them, else ASCII.
class Glyphs {
 public:
  explicit Glyphs(bool blocks) : blocks_(blocks) {}

  // The last of `values`, a column each, the newest on the right; the largest of them is full.
  std::string sparkline(std::span<const float> values, std::size_t columns) const;
  struct Bar {
    std::string filled;
    std::string rest;
  };
  // `part`: 0 to 1.
  Bar bar(double part, std::size_t columns) const;
  // clean(), and a sign at the end if that is not all.
  std::string shorten(std::string_view text, std::size_t columns) const;
  std::string_view ascending() const { return blocks_ ? "▴" : "^"; }
  std::string_view descending() const { return blocks_ ? "▾" : "v"; }
  std::string_view selected() const { return blocks_ ? "▸" : ">"; }

 private:
  bool blocks_;
};

// --- Lines

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
  // With blanks before it, so that it ends `columns` further on.
  void add_right(std::string text, std::size_t columns, Style style = Style::plain);
  // Blanks up to that column.
  void pad_to(std::size_t column);
  void append(const Line& other);

  const std::vector<Span>& spans() const { return spans_; }
  std::size_t width() const { return width_; }
  std::string text() const;
  // Shows everything that was added so far as a bar of one colour.
  void reverse();

 private:
  std::vector<Span> spans_;
  std::size_t width_ = 0;
};

// Those of the items that fit, from the first on, two blanks between them.
Line join(const std::vector<Line>& items, std::size_t columns);

}  // namespace tubed::tubectl::top
