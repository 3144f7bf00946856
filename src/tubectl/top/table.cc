// The table of the tubes.
//
// lay_out() chooses the columns for the width: it starts with all columns and drops the column with
// the largest rank until the names have kLeastName columns; the graph is dropped in the same order.
// The remaining room goes to the names and then to the graph. Each visible tube then becomes a
// line.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "text/units.h"
#include "tubectl/top/frame.h"

namespace tubed::tubectl::top {
namespace {

// A name may be cut to this width before a column is dropped.
constexpr std::size_t kLeastName = 16;
constexpr std::size_t kLeastGraph = 12;
constexpr std::size_t kMostGraph = 64;

struct Column {
  SortKey key;
  std::string_view title;
  std::size_t columns;  // without the preceding blank
  int rank;             // columns with larger ranks are dropped first
  Style style;          // of values other than 0
};

// In the order of the screen, between the name and the graph.
constexpr std::array<Column, 11> kColumns{{{SortKey::ready, "READY", 6, 0, Style::green},
                                           {SortKey::urgent, "URGENT", 6, 11, Style::bold},
                                           {SortKey::reserved, "RESERVED", 8, 1, Style::cyan},
                                           {SortKey::delayed, "DELAYED", 7, 3, Style::yellow},
                                           {SortKey::held, "HELD", 5, 6, Style::yellow},
                                           {SortKey::buried, "BURIED", 6, 2, Style::red},
                                           {SortKey::waiting, "WAITING", 7, 7, Style::plain},
                                           {SortKey::watching, "WATCHING", 8, 10, Style::plain},
                                           {SortKey::paused, "PAUSED", 6, 8, Style::yellow},
                                           {SortKey::puts, "PUTS/S", 6, 4, Style::plain},
                                           {SortKey::deletes, "DELETES/S", 9, 5, Style::plain}}};
constexpr int kGraphRank = 9;

struct Layout {
  std::vector<Column> columns;
  std::size_t name = 0;
  std::size_t graph = 0;  // 0: no graph
};

// The sorted column is always shown; the column of held jobs only if a tube has such jobs.
Layout lay_out(const TubeList& tubes, std::size_t columns) {
  Layout layout;
  const auto has_place = [&tubes](const Column& column, int kept) {
    if (column.key == tubes.sorted_by()) return true;
    return column.rank <= kept && (column.key != SortKey::held || tubes.has_held());
  };
  // The widest choice that leaves room for the name.
  for (int kept = static_cast<int>(kColumns.size()); kept >= 0; --kept) {
    layout.columns.clear();
    std::size_t used = kept >= kGraphRank ? 1 + kLeastGraph : 0;
    for (const Column& column : kColumns) {
      if (!has_place(column, kept)) continue;
      layout.columns.push_back(column);
      used += 1 + column.columns;
    }
    if (used + kLeastName > columns && kept > 0) continue;
    // The name includes the mark of the selected row.
    const std::size_t room = columns - used;
    layout.name =
        kept >= kGraphRank ? std::clamp(tubes.longest_name() + 2, kLeastName, room) : room;
    if (kept >= kGraphRank) layout.graph = std::min(kLeastGraph + room - layout.name, kMostGraph);
    return layout;
  }
  return layout;
}

// At most six characters: "1m25s", and "49.7kd" from 100 days on.
std::string pause_text(std::uint64_t seconds) {
  constexpr std::uint64_t kDay = 86'400;
  return seconds < 100 * kDay ? time_in_words(seconds) : shortened(seconds / kDay) + "d";
}

// Numbers are shortened to the width of a column. An unknown rate is "-". Precondition: the key is
// not the name.
std::string cell(const TubeRow& row, SortKey key) {
  TUBED_ASSERT(key != SortKey::name);
  if (key == SortKey::puts || key == SortKey::deletes) {
    return row.rates ? shortened_rate(sort_value(row.counts, row.rates, key)) : "-";
  }
  const std::uint64_t count = row.counts.*kSortCounts[static_cast<std::size_t>(key)];
  if (key == SortKey::paused) return count == 0 ? "" : pause_text(count);
  return shortened(count);
}

Line title_line(const TubeList& tubes, const Layout& layout, const Glyphs& glyphs) {
  const auto mark = [&](SortKey key) -> std::string_view {
    if (key != tubes.sorted_by()) return " ";
    return tubes.ascending() ? glyphs.ascending() : glyphs.descending();
  };
  Line line("  TUBE", Style::bold);
  line.add(std::string(mark(SortKey::name)), Style::bold);
  line.pad_to(layout.name);
  for (const Column& column : layout.columns) {
    line.add_right(fmt::format("{}{}", mark(column.key), column.title), column.columns + 1,
                   Style::bold);
  }
  if (layout.graph > 0) {
    constexpr std::string_view kLong = "READY, OVER TIME";
    const std::string_view title = layout.graph >= kLong.size() ? kLong : "OVER TIME";
    line.add_right(std::string(title), layout.graph + 1, Style::bold);
  }
  return line;
}

Line tube_line(const TubeRow& row, bool selected, const Layout& layout, const Glyphs& glyphs) {
  const bool paused = row.counts.pause_seconds_left > 0;
  Line line(selected ? fmt::format("{} ", glyphs.selected()) : "  ", Style::cyan);
  line.add(glyphs.shorten(row.counts.name, layout.name - 2), paused ? Style::yellow : Style::plain);
  line.pad_to(layout.name);
  for (const Column& column : layout.columns) {
    std::string text = cell(row, column.key);
    const Style style = text == "0" || text == "-" ? Style::dim : column.style;
    line.add_right(std::move(text), column.columns + 1, style);
  }
  if (selected) line.reverse();
  if (layout.graph > 0) {
    line.add(" ");
    line.add(glyphs.sparkline(row.ready.values(), layout.graph), Style::green);
  }
  return line;
}

}  // namespace

std::vector<Line> compose_table(const TubeList& tubes, bool selects, const Glyphs& glyphs,
                                std::size_t columns, std::size_t rows) {
  const Layout layout = lay_out(tubes, columns);
  std::vector<Line> lines{title_line(tubes, layout, glyphs)};
  for (std::size_t index = tubes.first(); index < tubes.size() && lines.size() < rows; ++index) {
    const bool selected = selects && index == tubes.selected_index();
    lines.push_back(tube_line(tubes[index], selected, layout, glyphs));
  }
  if (tubes.size() == 0 && lines.size() < rows) {
    lines.emplace_back(
        tubes.all() == 0
            ? "  no tubes"
            : glyphs.shorten(fmt::format("  no tube has \"{}\" in its name", tubes.filter()),
                             columns),
        Style::dim);
  }
  return lines;
}

}  // namespace tubed::tubectl::top
