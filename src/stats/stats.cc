#include "stats/stats.h"

#include <algorithm>

#include "stats/metrics.h"

namespace tubed::stats {

using protocol::YamlBlock;

namespace {

template <class State>
void write_rows(Rows<State> rows, const State& state, YamlBlock& block) {
  for (const Row<State>& row : rows) {
    if (row.key.empty() || (row.shown != nullptr && !row.shown(state))) continue;
    if (row.number != nullptr) block.number(row.key, row.number(state));
    if (row.text != nullptr) block.text(row.key, row.text(state));
    if (row.plain != nullptr) block.plain(row.key, row.plain(state));
    if (row.composed != nullptr) block.text(row.key, row.composed(state));
    if (row.flag != nullptr) block.plain(row.key, row.flag(state) ? "true" : "false");
    if (row.seconds != nullptr) block.seconds(row.key, row.seconds(state));
  }
}

template <class State>
void append_texts(Rows<State> rows, std::vector<StatsText>& texts) {
  for (const Row<State>& row : rows) {
    if (!row.key.empty()) texts.push_back({std::string(row.key), std::string(row.meaning)});
  }
}

void write_command_counts(CommandCounts commands, CounterPlace place, YamlBlock& block) {
  for (const CommandCount& command : commands) {
    if (command.place != place) continue;
    block.number(counter_key(command), command.count);
  }
}

void append_command_texts(CommandCounts commands, CounterPlace place,
                          std::vector<StatsText>& texts) {
  for (const CommandCount& command : commands) {
    if (command.place != place) continue;
    texts.push_back({counter_key(command), counter_meaning(command)});
  }
}

// The blocks have about 1.8 KiB, 0.6 KiB and, for a job without tags, 0.2 KiB.
constexpr std::size_t kExpectedBytes = 2048;
constexpr std::size_t kExpectedTubeBytes = 768;
constexpr std::size_t kExpectedJobBytes = 256;

}  // namespace

YamlBlock server_stats(const ServerState& server) {
  YamlBlock block(kExpectedBytes);
  write_rows(job_count_rows(), server, block);
  write_command_counts(server.commands, CounterPlace::beanstalkd, block);
  write_rows(beanstalkd_rows(), server, block);
  write_command_counts(server.commands, CounterPlace::own, block);
  write_rows(own_rows(), server, block);
  write_command_counts(server.commands, CounterPlace::last, block);
  write_rows(newest_rows(), server, block);
  if (server.cluster != nullptr) write_rows(cluster_rows(), *server.cluster, block);
  return block;
}

YamlBlock tube_stats(const engine::TubeInfo& tube) {
  YamlBlock block(kExpectedTubeBytes);
  write_rows(tube_rows(), tube, block);
  return block;
}

YamlBlock job_stats(const engine::JobInfo& job, const FactLog& log) {
  YamlBlock block(kExpectedJobBytes);
  write_rows(job_rows(), {job, log.segment_of(job.id)}, block);
  return block;
}

YamlBlock tube_times(const engine::TubeInfo& tube) {
  const HistogramView& queue = tube.put_to_reserve;
  const HistogramView& processing = tube.reserve_to_delete;
  TUBED_ASSERT(std::ranges::equal(queue.bounds, processing.bounds));
  YamlBlock block;
  block.item("next 0");
  block.item("seconds queue processing");
  for (std::size_t i = 0; i < queue.counts.size(); ++i) {
    const std::string bound = i < queue.bounds.size() ? bound_text(queue, i) : "more";
    block.item(bound + ' ' + std::to_string(queue.counts[i]) + ' ' +
               std::to_string(processing.counts[i]));
  }
  return block;
}

std::vector<StatsText> server_stats_texts(CommandCounts commands) {
  std::vector<StatsText> texts;
  append_texts(job_count_rows(), texts);
  append_command_texts(commands, CounterPlace::beanstalkd, texts);
  append_texts(beanstalkd_rows(), texts);
  append_command_texts(commands, CounterPlace::own, texts);
  append_texts(own_rows(), texts);
  append_command_texts(commands, CounterPlace::last, texts);
  append_texts(newest_rows(), texts);
  append_texts(cluster_rows(), texts);
  return texts;
}

std::vector<StatsText> tube_stats_texts() {
  std::vector<StatsText> texts;
  append_texts(tube_rows(), texts);
  return texts;
}

std::vector<StatsText> job_stats_texts() {
  std::vector<StatsText> texts;
  append_texts(job_rows(), texts);
  return texts;
}

}  // namespace tubed::stats
