// The head of a frame: the server, its jobs, its rates, and how full it is.
//
// Each line is built from labelled items. join() omits the items that do not fit, so the important
// items come first. If the lines exceed the rows that the frame grants, the lines with the largest
// rank are removed.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tubectl/top/frame.h"

namespace tubed::tubectl::top {
namespace {

// In a narrower window the graphs are stacked.
constexpr std::size_t kTwoGraphs = 60;
constexpr std::size_t kBarColumns = 16;
constexpr double kNearlyFull = 0.75;
constexpr double kFull = 0.9;

Line labelled(std::string label, std::string value, Style style) {
  Line item(std::move(label), Style::dim);
  item.add(" ");
  item.add(std::move(value), style);
  return item;
}

Line state_of(const Model& model, bool frozen) {
  if (model.trouble()) return Line("NO SERVER", Style::red);
  if (frozen) return Line("FROZEN", Style::yellow);
  if (model.server().text("draining") == "true") return Line("draining", Style::yellow);
  return Line("serving", Style::green);
}

Line server_line(const Model& model, bool frozen, const Glyphs& glyphs, std::size_t columns) {
  const client::StatsBlock& server = model.server();
  const Line state = state_of(model, frozen);
  const std::size_t address_columns = columns - state.width() - 2;
  std::vector<Line> items{Line(glyphs.shorten(model.address(), address_columns), Style::bold),
                          state};
  if (const auto version = server.text("version")) {
    items.push_back(labelled("version", clean(*version, 20), Style::plain));
  }
  if (const auto uptime = server.number("uptime")) {
    items.push_back(labelled("up", seconds_in_words(*uptime), Style::plain));
  }
  if (const auto host = server.text("hostname")) {
    items.push_back(labelled("on", clean(*host, 40), Style::plain));
  }
  return join(items, columns);
}

Line count_of(const client::StatsBlock& server, std::string label, std::string_view key,
              Style style) {
  const std::uint64_t number = server.count(key);
  return labelled(std::move(label), shortened(number), number == 0 ? Style::plain : style);
}

// Held jobs are also counted as delayed; dead and expired jobs are counted since the server's
// start. A 0 is not shown.
Line jobs_line(const client::StatsBlock& server, std::size_t columns) {
  std::vector<Line> items{Line("jobs       ", Style::bold),
                          count_of(server, "ready", "current-jobs-ready", Style::green),
                          count_of(server, "reserved", "current-jobs-reserved", Style::cyan),
                          count_of(server, "delayed", "current-jobs-delayed", Style::yellow),
                          count_of(server, "buried", "current-jobs-buried", Style::red)};
  if (server.count("current-jobs-held") > 0) {
    items.insert(items.begin() + 4, count_of(server, "held", "current-jobs-held", Style::yellow));
  }
  if (server.count("dead-jobs") + server.count("expired-jobs") > 0) {
    items.push_back(count_of(server, "dead", "dead-jobs", Style::red));
    items.push_back(count_of(server, "expired", "expired-jobs", Style::yellow));
  }
  items.push_back(count_of(server, "urgent", "current-jobs-urgent", Style::bold));
  return join(items, columns);
}

Line clients_line(const Model& model, std::size_t columns) {
  const client::StatsBlock& server = model.server();
  const TubeList& tubes = model.tubes;
  std::vector<Line> items{
      Line("connections", Style::bold),
      Line(shortened(server.count("current-connections"))),
      count_of(server, "workers", "current-workers", Style::plain),
      count_of(server, "waiting", "current-waiting", Style::plain),
  };
  const std::string count = tubes.filter().empty()
                                ? shortened(tubes.all())
                                : fmt::format("{} of {}", tubes.size(), tubes.all());
  items.push_back(labelled("tubes", count, tubes.filter().empty() ? Style::plain : Style::yellow));
  const auto cpu = model.cpu_percent();
  items.push_back(labelled("CPU", cpu ? fmt::format("{:.0f} %", *cpu) : "-", Style::plain));
  items.push_back(count_of(server, "producers", "current-producers", Style::plain));
  return join(items, columns);
}

// A flow with its graph, exactly `columns` wide.
Line flow_line(const Model& model, Flow flow, const Glyphs& glyphs, std::size_t columns) {
  struct RequestResult {
    std::string_view label;
    Style style;
  };
  constexpr std::array<RequestResult, kFlows> kLooks{{{"puts/s", Style::green},
                                                      {"reserves/s", Style::cyan},
                                                      {"deletes/s", Style::green},
                                                      {"timeouts/s", Style::red}}};
  const RequestResult& result = kLooks[static_cast<std::size_t>(flow)];
  const auto rate = model.rate(flow);
  Line line(fmt::format("{:<10}", result.label), Style::bold);
  line.add_right(rate ? shortened_rate(*rate) : "-", 7);
  line.add(" ");
  const std::size_t graph = columns - line.width();
  line.add(glyphs.sparkline(model.history(flow).values(), graph), result.style);
  return line;
}

std::vector<Line> flow_lines(const Model& model, const Glyphs& glyphs, std::size_t columns) {
  std::vector<Line> lines;
  constexpr std::array kPairs{Flow::puts, Flow::reserves, Flow::deletes, Flow::timeouts};
  if (columns < kTwoGraphs) {
    for (const Flow flow : kPairs) lines.push_back(flow_line(model, flow, glyphs, columns));
    return lines;
  }
  constexpr std::size_t kBetweenGraphs = 3;
  const std::size_t half = (columns - kBetweenGraphs) / 2;
  for (std::size_t index = 0; index < kPairs.size(); index += 2) {
    Line line = flow_line(model, kPairs[index], glyphs, half);
    line.pad_to(half + kBetweenGraphs);
    line.append(flow_line(model, kPairs[index + 1], glyphs, half));
    lines.push_back(std::move(line));
  }
  return lines;
}

// The used share of a limit; without a limit, only the amount.
Line fill(std::string label, std::uint64_t used, std::uint64_t limit, const Glyphs& glyphs) {
  Line item(std::move(label), Style::bold);
  item.add(" ");
  if (limit == 0) {
    item.add(fmt::format("{}, no limit", bytes_in_words(used)));
    return item;
  }
  const double part = static_cast<double>(used) / static_cast<double>(limit);
  const Style style = part >= kFull         ? Style::red
                      : part >= kNearlyFull ? Style::yellow
                                            : Style::green;
  const Glyphs::Bar bar = glyphs.bar(part, kBarColumns);
  item.add(bar.filled, style);
  item.add(bar.rest, Style::dim);
  item.add(fmt::format(" {} of {}", bytes_in_words(used), bytes_in_words(limit)));
  return item;
}

// Empty if the server does not report these values; beanstalkd does not.
std::vector<Line> fill_lines(const client::StatsBlock& server, const Glyphs& glyphs,
                             std::size_t columns) {
  std::vector<Line> items;
  if (const auto used = server.number("job-memory")) {
    items.push_back(fill("memory", *used, server.count("max-job-memory"), glyphs));
  }
  const auto journal = server.number("journal-bytes");
  if (journal && *journal > 0) {
    items.push_back(fill("journal", *journal, server.count("journal-max-bytes"), glyphs));
  }
  if (items.empty()) return {};
  return {join(items, columns)};
}

}  // namespace

std::vector<Line> compose_head(const Model& model, bool frozen, const Glyphs& glyphs,
                               std::size_t columns, std::size_t rows) {
  // In the order of the screen; less important lines have larger ranks.
  struct Ranked {
    std::size_t rank;
    Line line;
  };
  std::vector<Ranked> ranked{{0, server_line(model, frozen, glyphs, columns)}};
  for (Line& line : compose_cluster(model.server(), glyphs, columns)) {
    ranked.push_back({2, std::move(line)});
  }
  ranked.push_back({4, clients_line(model, columns)});
  ranked.push_back({1, jobs_line(model.server(), columns)});
  for (Line& line : flow_lines(model, glyphs, columns)) ranked.push_back({2, std::move(line)});
  for (Line& line : fill_lines(model.server(), glyphs, columns)) {
    ranked.push_back({3, std::move(line)});
  }
  while (ranked.size() > rows) {
    // The last of the lines with the largest rank.
    const auto least = std::max_element(
        ranked.rbegin(), ranked.rend(),
        [](const Ranked& one, const Ranked& other) { return one.rank < other.rank; });
    ranked.erase(std::prev(least.base()));
  }
  std::vector<Line> lines;
  for (Ranked& one : ranked) lines.push_back(std::move(one.line));
  return lines;
}

}  // namespace tubed::tubectl::top
