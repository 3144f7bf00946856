// Frame: all that is on the screen, as lines of styled text, for any size of it.
//
// Pure: the same model, view and size give the same frame. No line is wider than the size, and
// there are never more lines than it has rows.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tubectl/top/model.h"
#include "tubectl/top/text.h"
#include "tubectl/top/view.h"

namespace tubed::tubectl::top {

struct Size {
  std::size_t columns = 80;
  std::size_t rows = 24;
};
// Below this there is only a line that says so.
inline constexpr Size kSmallest{40, 8};

struct Frame {
  std::vector<Line> lines;
  std::optional<std::size_t> cursor;  // the column in the last line where what is typed appears
};

// Also scrolls the model's table and the view so far that what is selected has its place.
// O(what is shown).
Frame compose(Model& model, View& view, const Glyphs& glyphs, Size size);
// The head and the table for output that takes no keys (--once): no tube is selected, and no line
// is empty.
Frame compose_once(Model& model, const Glyphs& glyphs, Size size);

// --- Its parts

// At most `rows` lines; the least important parts are left out first.
std::vector<Line> compose_head(const Model& model, bool frozen, const Glyphs& glyphs,
                               std::size_t columns, std::size_t rows);
// The server's cluster: which node leads, and its nodes; at most kClusterRows lines, none if the
// server is in no cluster. They are part of the head.
inline constexpr std::size_t kClusterRows = 2;
std::vector<Line> compose_cluster(const client::StatsBlock& server, const Glyphs& glyphs,
                                  std::size_t columns);
// The titles and the tubes, at most `rows` lines in all.
std::vector<Line> compose_table(const TubeList& tubes, bool selects, const Glyphs& glyphs,
                                std::size_t columns, std::size_t rows);
// All of a tube, as many lines as it takes.
std::vector<Line> compose_details(const Model& model, const std::string& tube, const Glyphs& glyphs,
                                  std::size_t columns);
std::vector<Line> compose_help(std::size_t columns);

}  // namespace tubed::tubectl::top
