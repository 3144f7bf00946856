// tubectl tubes: lists the tubes of a server and their rates.
//
// Takes two snapshots, --interval apart, and derives the rates from the difference of the counters;
// with an interval of 0, one snapshot without rates. --names requests only the list of tubes: one
// command instead of one per tube. A named tube that does not exist is reported after the table,
// with exit code 1.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/json.h"
#include "tubectl/snapshot.h"
#include "tubectl/terminal.h"
#include "tubectl/top/tube_list.h"
#include "tubectl/watch.h"

namespace tubed::tubectl {
namespace {

struct TubesOptions {
  Server server;
  std::vector<std::string> tubes;
  double interval = 1;
  std::string sort = "name";
  bool names = false;
  std::optional<double> watch;
  bool json = false;
};

struct TubeRow {
  const TubeCounts* counts = nullptr;
  Rates rates;
};

struct TubeColumn {
  const char* title;
  std::uint64_t TubeCounts::*count;
  Style style;  // used unless the count is 0
};

// The columns between the name and the rates.
constexpr std::array<TubeColumn, 8> kTubeColumns{
    {{"ready", &TubeCounts::ready, Style::plain},
     {"urgent", &TubeCounts::urgent, Style::plain},
     {"reserved", &TubeCounts::reserved, Style::plain},
     {"delayed", &TubeCounts::delayed, Style::plain},
     {"buried", &TubeCounts::buried, Style::red},
     {"waiting", &TubeCounts::waiting, Style::green},
     {"watching", &TubeCounts::watching, Style::plain},
     {"paused", &TubeCounts::pause_seconds_left, Style::yellow}}};
// The last column, shown if a tube has delayed jobs that a group holds.
constexpr TubeColumn kHeldColumn{"held", &TubeCounts::held, Style::yellow};

bool has_held(const std::vector<TubeRow>& rows) {
  return std::ranges::any_of(rows, [](const TubeRow& row) { return row.counts->held > 0; });
}

// Sorts by name or by the largest value. The snapshot is sorted by name and the sort is stable, so
// equal values stay in order of name.
void sort_rows(std::vector<TubeRow>& rows, top::SortKey key) {
  std::ranges::stable_sort(rows, std::greater{}, [key](const TubeRow& row) {
    return top::sort_value(*row.counts, row.rates, key);
  });
}

std::string rows_as_table(const std::vector<TubeRow>& rows, bool rates) {
  std::vector<TextTable::Column> columns{{"name"}};
  for (const TubeColumn& column : kTubeColumns) columns.push_back({column.title, true});
  if (rates) columns.insert(columns.end(), {{"puts/s", true}, {"deletes/s", true}});
  const bool held = has_held(rows);
  if (held) columns.push_back({kHeldColumn.title, true});
  TextTable table(std::move(columns));
  const auto cell = [](const TubeRow& row, const TubeColumn& column) -> TextTable::Cell {
    const std::uint64_t count = row.counts->*column.count;
    return {fmt::format("{}", count), count == 0 ? Style::dim : column.style};
  };
  for (const TubeRow& row : rows) {
    std::vector<TextTable::Cell> cells{{row.counts->name}};
    for (const TubeColumn& column : kTubeColumns) cells.push_back(cell(row, column));
    for (const double rate : {row.rates.puts, row.rates.deletes}) {
      if (rates)
        cells.push_back({fmt::format("{:.0f}", rate), rate == 0 ? Style::dim : Style::plain});
    }
    if (held) cells.push_back(cell(row, kHeldColumn));
    table.add(std::move(cells));
  }
  return table.text(Paint::for_descriptor(STDOUT_FILENO));
}

// One object per line. The keys are the column titles, part of the interface for scripts.
std::string rows_as_json(const std::vector<TubeRow>& rows, bool rates) {
  std::string text;
  const bool held = has_held(rows);
  for (const TubeRow& row : rows) {
    Json object = {{"name", row.counts->name}};
    for (const TubeColumn& column : kTubeColumns) object[column.title] = row.counts->*column.count;
    object["total-jobs"] = row.counts->total_jobs;
    if (rates) {
      object["puts-per-second"] = row.rates.puts;
      object["deletes-per-second"] = row.rates.deletes;
    }
    if (held) object[kHeldColumn.title] = row.counts->held;
    text += to_line(object) + "\n";
  }
  return text;
}

Result<int> print_names(client::Connection& connection, bool json) {
  const auto answer = TRY(connection.ask("list-tubes"));
  if (!answer.is("OK")) return refused("tubes", answer);
  auto names = client::list_items(answer.body);
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names)
    text += json ? to_line({{"name", name}}) + "\n" : name + "\n";
  return print(text);
}

// `last` is the snapshot of the last look, if any, and becomes that of this look.
Result<int> show_tubes(const TubesOptions& options, client::Connection& connection,
                       std::optional<Snapshot>& last) {
  if (options.names) return print_names(connection, options.json);
  const bool rates = options.interval > 0;
  if (!last && rates) {
    last = TRY(take_snapshot(connection, options.tubes));
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
  }
  auto now = TRY(take_snapshot(connection, options.tubes));
  const Snapshot before = last ? std::move(*last) : now;
  const double seconds = std::chrono::duration<double>(now.taken - before.taken).count();
  std::vector<TubeRow> rows;
  for (const TubeCounts& tube : now.tubes) {
    rows.push_back({&tube, rates_between(before.find(tube.name), tube, seconds)});
  }
  sort_rows(rows, *top::sort_key_of(options.sort));
  int code = 0;
  if (!rows.empty()) {
    code = print(options.json ? rows_as_json(rows, rates) : rows_as_table(rows, rates));
  }
  code = report_missing(now, options.tubes, code);
  last = std::move(now);
  return code;
}

Result<int> run_tubes(const TubesOptions& options) {
  std::optional<Snapshot> last;
  return look_or_watch(
      options.server, "tubes", options.watch, options.json,
      [&](client::Connection& connection) { return show_tubes(options, connection, last); });
}

constexpr std::array kTubesOptions{
    tube_option_or_word<&TubesOptions::tubes>("Only these tubes"),
    server_option<&TubesOptions::server>(),
    kMaxReplyOption,
    option<&TubesOptions::interval>(
        {.names = "--interval",
         .type = time(0, 3600),
         .help = "The time between two looks, for puts and deletes a second; 0 looks once, without",
         .shows_default = true}),
    option<&TubesOptions::sort>({.names = "--sort",
                                 .type = choice("KEY", top::kSortNames),
                                 .help = "By name, or the largest first",
                                 .shows_default = true}),
    option<&TubesOptions::names>(
        {.names = "--names", .help = "Only their names", .excludes = {"--tube"}}),
    watch_option<&TubesOptions::watch>(),
    json_option<&TubesOptions::json>(),
};

}  // namespace

const Subcommand& tubes_command() {
  static constexpr Subcommand kCommand = runs<TubesOptions, run_tubes>(
      {.name = "tubes",
       .group = kLookGroup,
       .summary = "Show the tubes, their jobs and how fast they move",
       .options = kTubesOptions,
       .footer =
           R"(paused: for how many seconds more. held: of the delayed jobs those that wait for a
group; only shown if a tube has some.

examples:
  tubectl tubes
  tubectl tubes mail images --interval 0
  tubectl tubes --sort ready --interval 2 --json
  tubectl tubes --names
  tubectl tubes --watch --sort ready)"});
  return kCommand;
}

}  // namespace tubed::tubectl
