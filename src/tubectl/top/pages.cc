// The pages of a frame that are text: the details of a tube, and the help.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "text/units.h"
#include "tubectl/top/frame.h"

namespace tubed::tubectl::top {
namespace {

constexpr std::size_t kKeyColumns = 24;
constexpr std::size_t kPairColumns = 38;
// Lines shown of a body; tubectl peek prints all.
constexpr std::size_t kBodyLines = 8;

Line title(std::string text, std::size_t columns) {
  Line line(std::move(text), Style::bold);
  line.pad_to(columns);
  line.reverse();
  return line;
}

// Adds as many pairs side by side as fit, to be read from top to bottom.
void add_stats(const client::StatsBlock& stats, std::size_t columns, std::vector<Line>& lines) {
  const auto& pairs = stats.lines();
  const std::size_t across = std::max<std::size_t>(1, columns / kPairColumns);
  const std::size_t down = (pairs.size() + across - 1) / across;
  for (std::size_t row = 0; row < down; ++row) {
    Line line;
    for (std::size_t column = 0; column < across; ++column) {
      const std::size_t index = column * down + row;
      if (index >= pairs.size()) break;
      line.pad_to(column * kPairColumns);
      line.add("  ");
      line.add(clean(fmt::format("{:<{}}", pairs[index].key, kKeyColumns - 2), kKeyColumns - 2),
               Style::dim);
      const std::size_t room = (across == 1 ? columns : kPairColumns) - kKeyColumns - 1;
      line.add(clean(pairs[index].value, room));
    }
    lines.push_back(std::move(line));
  }
}

Style style_of_state(std::string_view state) {
  if (state == "ready") return Style::green;
  return state == "buried" ? Style::red : Style::yellow;
}

void add_job(const HeadJob& job, const Glyphs& glyphs, std::size_t columns,
             std::vector<Line>& lines) {
  lines.emplace_back();
  Line head(fmt::format("next {} job", job.state), style_of_state(job.state));
  head.add(fmt::format("  {}", job.id), Style::bold);
  std::vector<Line> items{head};
  constexpr std::array<std::string_view, 4> kTimes{"age", "delay", "ttr", "time-left"};
  for (const std::string_view key :
       {"pri", "dead-reason", "dead-from", "age", "delay", "ttr", "time-left", "reserves",
        "timeouts", "releases", "buries", "kicks"}) {
    const auto value = job.stats.text(key);
    if (!value) continue;
    Line item(key == "pri" ? "priority" : std::string(key), Style::dim);
    const bool is_time = std::ranges::find(kTimes, key) != kTimes.end();
    const auto seconds = is_time ? job.stats.number(key) : std::nullopt;
    item.add(fmt::format(" {}", seconds ? time_in_words(*seconds) : clean(*value, 20)));
    items.push_back(std::move(item));
  }
  lines.push_back(join(items, columns));
  std::string_view rest = job.body;
  for (std::size_t line = 0; line < kBodyLines && !rest.empty(); ++line) {
    const auto end = rest.find('\n');
    std::string_view text = rest.substr(0, end);
    if (text.ends_with('\r')) text.remove_suffix(1);
    lines.emplace_back("  " + glyphs.shorten(text, columns - 2));
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  lines.emplace_back(fmt::format("  {} byte{} in all", job.bytes, job.bytes == 1 ? "" : "s"),
                     Style::dim);
}

}  // namespace

// Until the answer for this tube arrives, the page says that the server is being asked.
std::vector<Line> compose_details(const Model& model, const std::string& tube, const Glyphs& glyphs,
                                  std::size_t columns) {
  std::vector<Line> lines{title(glyphs.shorten(fmt::format("  TUBE {}", tube), columns), columns)};
  const auto& details = model.details;
  if (!details || details->tube != tube) {
    lines.emplace_back("  asking the server", Style::dim);
    return lines;
  }
  if (!details->there) {
    lines.emplace_back("  there is no such tube now", Style::yellow);
    return lines;
  }
  add_stats(details->stats, columns, lines);
  for (const HeadJob& job : details->jobs) add_job(job, glyphs, columns, lines);
  if (details->jobs.empty()) {
    lines.emplace_back();
    lines.emplace_back("no job is ready, delayed or buried", Style::dim);
  }
  return lines;
}

std::vector<Line> compose_help(std::size_t columns) {
  struct Row {
    std::string_view keys;
    std::string_view does;
  };
  constexpr std::array<Row, 14> kRows{{
      {"Up Down k j", "select a tube; also PgUp PgDn Home End"},
      {"Enter", "all of the tube, and its next jobs"},
      {"s >  <", "sort by the next, the previous column"},
      {"r", "reverse the order"},
      {"/", "show only tubes with a text in the name"},
      {"Esc", "show all tubes again; leave a question"},
      {"p", "pause the tube; asks for the seconds"},
      {"K", "kick buried jobs, or delayed if none is"},
      {"Space", "freeze the screen, and go on"},
      {"h ?", "this help"},
      {"q", "quit"},
      {"", ""},
      {"puts/s ...", "rates since the last query"},
      {"graphs", "newest right; the largest is full height"},
  }};
  std::vector<Line> lines{title("  KEYS", columns)};
  for (const Row& row : kRows) {
    Line line("  ");
    line.add(std::string(row.keys), Style::cyan);
    line.pad_to(15);
    line.add(clean(row.does, columns - 15));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tubed::tubectl::top
