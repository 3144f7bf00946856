// The tables of rows: server, tube, tube metrics, job. The lines of stats have the order of the
// rows.
#pragma once

#include <array>
#include <string>

#include "facts/fact_log.h"
#include "facts/info.h"
#include "facts/types.h"
#include "stats/cluster.h"
#include "stats/counters.h"
#include "stats/process.h"
#include "stats/row.h"
#include "tables/tube_metrics.h"

namespace tubed::stats {

// Everything that a row of the server reads. It is made for one block of stats or one page of
// metrics and does not outlive the tick: it refers to what the server owns.
struct ServerState {
  const Limits& limits;
  const ServerCounters& counters;
  CommandCounts commands;
  const ProcessIdentity& identity;
  const ProcessProbe& process;
  engine::EngineInfo queue;
  LogStats log;
  CpuTimes cpu;
  Duration uptime{};
  std::uint64_t input_bytes = 0;
  bool draining = false;
  const ClusterState* cluster = nullptr;  // null: the server is in no cluster
};

// In stats the counters of the commands follow the first two of them: those that beanstalkd has
// follow the jobs, the others follow beanstalkd's last line, or all other lines (CounterPlace).
Rows<ServerState> job_count_rows();
Rows<ServerState> beanstalkd_rows();
Rows<ServerState> own_rows();
// The lines that were added after 2.0.0. They come after all counters and before the lines of a
// cluster, so the order of the older lines stays the same.
Rows<ServerState> newest_rows();

// The counter of one command. [family: one label a command]
inline constexpr Metric kCommandMetric = {.family = "tubed_commands_total",
                                          .type = MetricType::counter,
                                          .label = "",
                                          .help = "Well-formed commands."};
// Its key in stats: the prefix and the command.
inline constexpr std::string_view kCounterPrefix = "cmd-";
std::string counter_key(const CommandCount& command);
std::string counter_meaning(const CommandCount& command);

inline constexpr Metric kInfoMetric = {.family = "tubed_info",
                                       .help = "1; the labels say who and what the server is."};

// A node of a cluster: the last lines of stats, and metrics. A server that is in no cluster has
// neither.
Rows<ClusterState> cluster_rows();
inline constexpr Metric kClusterInfoMetric = {
    .family = "tubed_cluster_info",
    .help = "1; the labels name the node and its cluster (empty: it belongs to none yet)."};
// Each member of the cluster, for the metrics only. A row that is not shown is left out.
Rows<ClusterNode> cluster_node_rows();

// A tube, for stats-tube and the metrics.
Rows<engine::TubeInfo> tube_rows();
// A tube's record of metrics, for the metrics only.
struct TubeMetricsState {
  const engine::TubeMetrics& metrics;
  Time now;
};
Rows<TubeMetricsState> tube_metrics_rows();

// A job and the segment of the journal with its record.
struct StoredJob {
  const engine::JobInfo& job;
  std::uint64_t segment = 0;
};
Rows<StoredJob> job_rows();

}  // namespace tubed::stats
