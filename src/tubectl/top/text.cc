// Numbers are shortened to five characters with a unit. Text is measured in columns of the
// terminal, not in bytes: characters are decoded from UTF-8 and measured by wcwidth(3), which
// depends on the locale. clean() replaces everything that a terminal would not show in its own
// column; the name of a tube cannot move the cursor.
#include "tubectl/top/text.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <wchar.h>

#include "text/utf8.h"

namespace tubed::tubectl::top {
namespace {

constexpr double kShortestScaled = 10'000;

// Precondition: `number` is at least kShortestScaled.
std::string scaled(double number) {
  constexpr std::string_view kUnits = "kMGTPE";
  std::size_t unit = 0;
  number /= 1000;
  // A value that rounds to 1000 is written in the next unit.
  while (number >= 999.5 && unit + 1 < kUnits.size()) {
    number /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f}{}", number, number < 99.95 ? 1 : 0, kUnits[unit]);
}

// The first character of a text, without a value if it is not UTF-8, and its length in bytes.
struct Character {
  std::optional<char32_t> code;
  std::size_t bytes = 1;
};

Character first_character(std::string_view text) {
  const std::size_t bytes = character_bytes(text);
  if (bytes == 0) return {};
  const auto byte = [&text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  char32_t code = bytes == 1 ? byte(0) : byte(0) & (0xFFU >> (bytes + 1));
  for (std::size_t at = 1; at < bytes; ++at) code = code << 6U | (byte(at) & 0x3FU);
  return {code, bytes};
}

// Negative if the terminal cannot show the character.
int columns_of(char32_t code) {
  return ::wcwidth(static_cast<wchar_t>(code));
}

}  // namespace

std::string shortened(std::uint64_t number) {
  const auto value = static_cast<double>(number);
  return value < kShortestScaled ? fmt::format("{}", number) : scaled(value);
}

std::string shortened_rate(double rate) {
  if (rate < 0.05) return rate > 0 ? "<0.1" : "0";
  if (rate < 99.95) return fmt::format("{:.1f}", rate);
  return rate < kShortestScaled - 0.5 ? fmt::format("{:.0f}", rate)
                                      : scaled(std::max(rate, kShortestScaled));
}

std::string bytes_in_words(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double number = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (number >= 1023.95 && unit + 1 < kUnits.size()) {
    number /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", number, kUnits[unit]);
}

std::string seconds_in_words(std::uint64_t seconds) {
  const std::uint64_t minutes = seconds / 60;
  const std::uint64_t hours = minutes / 60;
  if (hours >= 24) return fmt::format("{} d {:02}:{:02}", hours / 24, hours % 24, minutes % 60);
  return fmt::format("{:02}:{:02}:{:02}", hours, minutes % 60, seconds % 60);
}

std::size_t width_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    // In a locale that lacks the characters of our graphs, each counts as one column.
    const int wide = character.code ? columns_of(*character.code) : 1;
    columns += wide < 0 ? 1 : static_cast<std::size_t>(wide);
    text.remove_prefix(character.bytes);
  }
  return columns;
}

std::string clean(std::string_view text, std::size_t columns) {
  std::string cleaned;
  std::size_t used = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    std::string_view shown = text.substr(0, character.bytes);
    int wide = character.code ? columns_of(*character.code) : -1;
    if (character.code == U'\t') shown = " ";
    // A character without a column of its own would change its neighbour.
    else if (wide < 1)
      shown = "?";
    wide = std::max(wide, 1);
    if (used + static_cast<std::size_t>(wide) > columns) break;
    used += static_cast<std::size_t>(wide);
    cleaned += shown;
    text.remove_prefix(character.bytes);
  }
  return cleaned;
}

std::string Glyphs::sparkline(std::span<const float> values, std::size_t columns) const {
  constexpr std::array<std::string_view, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<std::string_view, 8> kAscii{"_", ".", ":", "-", "=", "+", "*", "#"};
  const auto& levels = blocks_ ? kBlocks : kAscii;
  const auto shown = values.last(std::min(values.size(), columns));
  std::string text(columns - shown.size(), ' ');
  const float largest = shown.empty() ? 0 : *std::ranges::max_element(shown);
  for (const float value : shown) {
    std::size_t level = 0;
    if (value > 0) {
      const float part = value / largest * static_cast<float>(levels.size() - 1);
      // A small value must differ from 0.
      level = std::clamp<std::size_t>(static_cast<std::size_t>(part + 0.5F), 1, levels.size() - 1);
    }
    text += levels[level];
  }
  return text;
}

Glyphs::Bar Glyphs::bar(double part, std::size_t columns) const {
  part = std::clamp(part, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(part * static_cast<double>(columns) + 0.5);
  Bar bar;
  for (std::size_t column = 0; column < columns; ++column) {
    if (column < filled) {
      bar.filled += blocks_ ? "█" : "#";
    } else {
      bar.rest += blocks_ ? "░" : ".";
    }
  }
  return bar;
}

std::string Glyphs::shorten(std::string_view text, std::size_t columns) const {
  std::string whole = clean(text, columns + 1);
  if (width_of(whole) <= columns || columns == 0) return clean(text, columns);
  return clean(text, columns - 1) + (blocks_ ? "…" : "~");
}

void Line::add(std::string text, Style style) {
  if (text.empty()) return;
  width_ += width_of(text);
  if (!spans_.empty() && spans_.back().style == style && !spans_.back().reversed) {
    spans_.back().text += text;
  } else {
    spans_.push_back({std::move(text), style});
  }
}

void Line::add_right(std::string text, std::size_t columns, Style style) {
  const std::size_t wide = width_of(text);
  if (wide < columns) add(std::string(columns - wide, ' '));
  add(std::move(text), style);
}

void Line::pad_to(std::size_t column) {
  if (column > width_) add(std::string(column - width_, ' '));
}

void Line::reverse() {
  spans_ = {{text(), Style::bold, true}};
}

void Line::append(const Line& other) {
  for (const Span& span : other.spans_) add(span.text, span.style);
}

std::string Line::text() const {
  std::string text;
  for (const Span& span : spans_) text += span.text;
  return text;
}

Line join(const std::vector<Line>& items, std::size_t columns) {
  constexpr std::size_t kBetween = 2;
  Line line;
  for (const Line& item : items) {
    const std::size_t before = line.width() == 0 ? 0 : kBetween;
    if (line.width() + before + item.width() > columns) continue;
    line.add(std::string(before, ' '));
    line.append(item);
  }
  return line;
}

}  // namespace tubed::tubectl::top
