// The rows as the blocks of stats, stats-tube and stats-job, and their keys and meanings for the
// reference page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "facts/fact_log.h"
#include "facts/info.h"
#include "protocol/block.h"
#include "stats/rows.h"

namespace tubed::stats {

// The lines of beanstalkd 1.13 in its order, then tubed's own. O(1). [notes: stats, in order]
void write_server_stats(const ServerState& server, protocol::BlockSink& block);
// The version of the server, as its line in stats.
std::string_view version();
void write_tube_stats(const engine::TubeInfo& tube, protocol::BlockSink& block);
void write_job_stats(const engine::JobInfo& job, const FactLog& log, protocol::BlockSink& block);
// The table of stats-tube-times: a row for each bucket of the tube's histograms, with the bounds of
// the metrics.
void write_tube_times(const engine::TubeInfo& tube, protocol::BlockSink& block);

// For the reference: each line's key and meaning, in order.
struct StatsText {
  std::string key;
  std::string meaning;
};
std::vector<StatsText> server_stats_texts(CommandCounts commands);
std::vector<StatsText> tube_stats_texts();
std::vector<StatsText> job_stats_texts();

}  // namespace tubed::stats
