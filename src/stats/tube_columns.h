// The columns of a tube in stats-tubes, and in the list of tubes and the events of the HTTP API.
// The first is the name of the tube, the others are numbers.
//
// A new column of stats-tubes comes last: clients may read the columns by position.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "facts/info.h"
#include "stats/row.h"

namespace tubed::stats {

struct TubeColumn {
  std::string_view name;                                       // of the events
  std::string_view meaning;                                    // of a listed column
  std::uint64_t (*number)(const engine::TubeInfo&) = nullptr;  // null: the name of the tube
  std::string_view listed = {};  // its name in stats-tubes; empty: it is not there
};

inline constexpr auto kTubeColumns = std::to_array<TubeColumn>({
    {.name = "name", .meaning = "The name of the tube.", .listed = "name"},
    {.name = "urgent",
     .meaning = "Ready jobs with a priority below 1024.",
     .number = [](const engine::TubeInfo& t) { return t.jobs.urgent; },
     .listed = "urgent"},
    {.name = "ready",
     .meaning = "Ready jobs.",
     .number = [](const engine::TubeInfo& t) { return t.jobs.ready; },
     .listed = "ready"},
    {.name = "reserved",
     .meaning = "Jobs that clients hold.",
     .number = [](const engine::TubeInfo& t) { return t.jobs.reserved; },
     .listed = "reserved"},
    {.name = "delayed",
     .meaning = "Delayed jobs.",
     .number = [](const engine::TubeInfo& t) { return t.jobs.delayed; },
     .listed = "delayed"},
    {.name = "buried",
     .meaning = "Buried jobs.",
     .number = [](const engine::TubeInfo& t) { return t.jobs.buried; },
     .listed = "buried"},
    {.name = "held",
     .meaning = {},
     .number = [](const engine::TubeInfo& t) { return t.jobs.held; }},
    {.name = "total",
     .meaning = "Jobs put since the tube was created.",
     .number = [](const engine::TubeInfo& t) { return t.total_jobs; },
     .listed = "total"},
    {.name = "using",
     .meaning = "Connections whose puts go there.",
     .number = [](const engine::TubeInfo& t) { return t.using_count; },
     .listed = "using"},
    {.name = "watching",
     .meaning = "Connections that watch it.",
     .number = [](const engine::TubeInfo& t) { return t.watching_count; },
     .listed = "watching"},
    {.name = "waiting",
     .meaning = "Connections that watch it and wait in a reserve.",
     .number = [](const engine::TubeInfo& t) { return t.waiting_count; },
     .listed = "waiting"},
    {.name = "reserves",
     .meaning = {},
     .number = [](const engine::TubeInfo& t) { return t.reserve_count; }},
    {.name = "timeouts",
     .meaning = {},
     .number = [](const engine::TubeInfo& t) { return t.timeout_count; }},
    {.name = "deletes",
     .meaning = "Jobs deleted since the tube was created.",
     .number = [](const engine::TubeInfo& t) { return t.delete_count; },
     .listed = "delete"},
    {.name = "pause",
     .meaning = "Seconds for which it was paused last.",
     .number = [](const engine::TubeInfo& t) -> std::uint64_t { return t.pause.count; },
     .listed = "pause"},
    {.name = "pause-left",
     .meaning = "Seconds until its pause ends.",
     .number = [](const engine::TubeInfo& t) { return whole_seconds_of(t.pause_left); },
     .listed = "pause-left"},
});

inline constexpr std::size_t kListedTubeColumns = static_cast<std::size_t>(std::ranges::count_if(
    kTubeColumns, [](const TubeColumn& column) { return !column.listed.empty(); }));

// The names of the columns of stats-tubes.
inline constexpr auto kListedTubeNames = [] {
  std::array<std::string_view, kListedTubeColumns> names{};
  std::size_t count = 0;
  for (const TubeColumn& column : kTubeColumns) {
    if (!column.listed.empty()) names[count++] = column.listed;
  }
  return names;
}();

}  // namespace tubed::stats
