// Frame: the contents of the screen as lines of styled text, for any size.
//
// Pure: the same model, view and size give the same frame. No line is wider than the size, and a
// frame has no more lines than the size has rows.
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
// In a smaller window only a line that says so is shown.
inline constexpr Size kSmallest{40, 8};

struct Frame {
  std::vector<Line> lines;
  std::optional<std::size_t> cursor;  // column of the cursor in the last line
};

// Also scrolls the model's table and the view to keep the selection visible. O(what is shown).
Frame compose(Model& model, View& view, const Glyphs& glyphs, Size size);
// The head and the table for output without keys (--once): no tube is selected, and no line is
// empty.
Frame compose_once(Model& model, const Glyphs& glyphs, Size size);

// At most `rows` lines; the least important parts are omitted first.
std::vector<Line> compose_head(const Model& model, bool frozen, const Glyphs& glyphs,
                               std::size_t columns, std::size_t rows);
// The server's cluster, as part of the head: which node leads, and its nodes. At most kClusterRows
// lines; none if the server is in no cluster.
inline constexpr std::size_t kClusterRows = 2;
std::vector<Line> compose_cluster(const client::StatsBlock& server, const Glyphs& glyphs,
                                  std::size_t columns);
// The titles and the tubes, in at most `rows` lines.
std::vector<Line> compose_table(const TubeList& tubes, bool selects, const Glyphs& glyphs,
                                std::size_t columns, std::size_t rows);
// Everything about a tube, in as many lines as needed.
std::vector<Line> compose_details(const Model& model, const std::string& tube, const Glyphs& glyphs,
                                  std::size_t columns);
std::vector<Line> compose_help(std::size_t columns);

}  // namespace tubed::tubectl::top
