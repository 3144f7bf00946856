// The rows of stats and of the metrics, by what they tell of. Lines of stats come in their order.
#pragma once

#include <array>
#include <string>

#include "commands/row.h"
#include "commands/service.h"
#include "engine/info.h"
#include "engine/tally.h"

namespace tubed::commands {

// Everything that a row of the server may tell.
struct ServerState {
  explicit ServerState(const Service& of);

  const Service& service;
  engine::EngineInfo queue;
  LogStats log;
  CpuTimes cpu;
};

// In stats the command table's counters stand behind the first two of them: those that beanstalkd
// has behind the jobs, the others behind beanstalkd's last line.
Rows<ServerState> job_rows();
Rows<ServerState> beanstalkd_rows();
Rows<ServerState> own_rows();

// A counter of the command table. [family: one label a command]
inline constexpr Metric kCommandMetric = {.family = "tubed_commands_total",
                                          .type = MetricType::counter,
                                          .label = "",
                                          .help = "Well-formed commands."};
std::string counter_key(const Command& command);
std::string counter_meaning(const Command& command);

inline constexpr Metric kInfoMetric = {.family = "tubed_info",
                                       .help = "1; the labels say who and what the server is."};

// A tube, as stats-tube and its metrics tell of it.
Rows<engine::TubeInfo> tube_rows();
// What only the metrics tell of it.
struct TallyState {
  const engine::Tally& tally;
  Time now;
};
Rows<TallyState> tally_rows();

// A job, and where the journal has it.
struct KeptJob {
  const engine::JobInfo& job;
  std::uint64_t segment = 0;
};
Rows<KeptJob> kept_job_rows();

}  // namespace tubed::commands
