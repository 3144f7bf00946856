// A frame has three parts from top to bottom: the head (top/head.cc), the page that the view shows
// (the table of top/table.cc, or the text of top/pages.cc), and the bottom line with the keys, a
// message, an error or a question. The head shrinks first when rows are few. The functions only
// compute text; top/screen.h draws it.
#include "tubectl/top/frame.h"

#include <algorithm>

#include <fmt/format.h>

namespace tubed::tubectl::top {
namespace {

constexpr std::size_t kHeadRows = 6;  // without the lines of a cluster
// Rows reserved for the titles, some tubes and the keys; the head gets a second row only if more
// are available.
constexpr std::size_t kLeastBelowHead = 6;
// Columns reserved for the answer to a question.
constexpr std::size_t kTypedColumns = 12;

// The number of lines that the head may have in a window with `rows` rows.
std::size_t head_rows(const Model& model, std::size_t rows) {
  const std::size_t wanted =
      kHeadRows + (model.server().text("cluster-name") ? kClusterRows : std::size_t{0});
  return std::min(wanted, rows - kLeastBelowHead);
}

struct Hint {
  std::string_view key;
  std::string_view does;
};

Line join_hints(std::initializer_list<Hint> hints, std::size_t columns) {
  std::vector<Line> items;
  for (const Hint& hint : hints) {
    Line item(std::string(hint.key), Style::cyan);
    item.add(fmt::format(" {}", hint.does));
    items.push_back(std::move(item));
  }
  return join(items, columns);
}

Line key_line(const View& view, const TubeList& tubes, std::size_t columns) {
  switch (view.page()) {
    case View::Page::details:
      return join_hints({{"Enter", "back"},
                         {"p", "pause"},
                         {"K", "kick"},
                         {"?", "help"},
                         {"q", "quit"},
                         {"Space", "freeze"},
                         {"Up Down", "scroll"}},
                        columns);
    case View::Page::help:
      return join_hints({{"Enter", "back"}, {"q", "quit"}, {"Up Down", "scroll"}}, columns);
    case View::Page::tubes:
      break;
  }
  if (!tubes.filter().empty()) {
    return join_hints({{"Esc", "all tubes"},
                       {"/", "filter"},
                       {"?", "help"},
                       {"q", "quit"},
                       {"Enter", "details"},
                       {"p", "pause"},
                       {"K", "kick"}},
                      columns);
  }
  return join_hints({{"q", "quit"},
                     {"?", "help"},
                     {"Enter", "details"},
                     {"/", "filter"},
                     {"s", "sort"},
                     {"r", "reverse"},
                     {"p", "pause"},
                     {"K", "kick"},
                     {"Space", "freeze"}},
                    columns);
}

std::string question_of(const View& view, const TubeList& tubes, const std::string& tube) {
  switch (view.question()) {
    case View::Question::none:
      break;
    case View::Question::filter:
      return "only tubes with: ";
    case View::Question::pause:
      return fmt::format("pause {}, seconds (0 ends it): ", tube);
    case View::Question::kick: {
      const TubeRow* const row = tubes.find(view.asked_tube());
      // The server kicks delayed jobs only if no job is buried. [protocol: kick]
      const bool delayed = row != nullptr && row->counts.buried == 0 && row->counts.delayed > 0;
      return fmt::format("kick {} jobs of {}, how many (all): ", delayed ? "delayed" : "buried",
                         tube);
    }
  }
  return {};
}

// The last line. Sets `cursor` if a question is open.
Line bottom_line(const Model& model, const View& view, const Glyphs& glyphs, std::size_t columns,
                 std::optional<std::size_t>& cursor) {
  if (view.question() != View::Question::none) {
    // The words around the name take up to 40 columns.
    const std::size_t name_columns = std::max<std::size_t>(8, columns / 4);
    const std::string tube = glyphs.shorten(view.asked_tube(), name_columns);
    const std::string question = question_of(view, model.tubes, tube);
    Line line(glyphs.shorten(question, columns - kTypedColumns), Style::bold);
    // Shows the end of the text, where the next letter appears.
    const std::size_t room = columns - line.width() - 1;
    const std::string& typed = view.typed();
    line.add(clean(typed.substr(typed.size() - std::min(typed.size(), room)), room));
    cursor = line.width();
    return line;
  }
  // A message comes first, because it is shown for a few seconds only.
  if (!view.message().empty()) {
    return Line(glyphs.shorten(view.message(), columns), Style::yellow);
  }
  if (model.trouble()) return Line(glyphs.shorten(*model.trouble(), columns), Style::red);
  return key_line(view, model.tubes, columns);
}

// The part of `lines` that is visible in `rows` rows at the view's scroll position.
std::vector<Line> scrolled(std::vector<Line> lines, View& view, std::size_t rows) {
  view.fit(lines.size(), rows);
  const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(view.scrolled());
  const auto count = std::min<std::size_t>(rows, lines.size() - view.scrolled());
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

std::vector<Line> compose_page(Model& model, View& view, const Glyphs& glyphs, Size size) {
  switch (view.page()) {
    case View::Page::tubes:
      break;
    case View::Page::details:
      return scrolled(compose_details(model, view.tube(), glyphs, size.columns), view, size.rows);
    case View::Page::help:
      return scrolled(compose_help(size.columns), view, size.rows);
  }
  model.tubes.fit(size.rows - 1);
  return compose_table(model.tubes, true, glyphs, size.columns, size.rows);
}

Frame too_small(Size size) {
  Frame frame;
  const std::string text = fmt::format("top wants {} x {}", kSmallest.columns, kSmallest.rows);
  if (size.rows > 0) frame.lines.emplace_back(clean(text, size.columns), Style::yellow);
  return frame;
}

}  // namespace

Frame compose(Model& model, View& view, const Glyphs& glyphs, Size size) {
  if (size.columns < kSmallest.columns || size.rows < kSmallest.rows) return too_small(size);
  Frame frame;
  frame.lines =
      compose_head(model, view.frozen(), glyphs, size.columns, head_rows(model, size.rows));
  const Size rest{size.columns, size.rows - frame.lines.size() - 1};
  for (Line& line : compose_page(model, view, glyphs, rest)) frame.lines.push_back(std::move(line));
  frame.lines.resize(size.rows - 1);
  frame.lines.push_back(bottom_line(model, view, glyphs, size.columns, frame.cursor));
  return frame;
}

Frame compose_once(Model& model, const Glyphs& glyphs, Size size) {
  if (size.columns < kSmallest.columns || size.rows < kSmallest.rows) return too_small(size);
  Frame frame;
  frame.lines = compose_head(model, false, glyphs, size.columns, head_rows(model, size.rows));
  const std::size_t rows = size.rows - frame.lines.size();
  model.tubes.fit(rows - 1);
  for (Line& line : compose_table(model.tubes, false, glyphs, size.columns, rows)) {
    frame.lines.push_back(std::move(line));
  }
  return frame;
}

}  // namespace tubed::tubectl::top
