#include "stats/stats.h"

#include <algorithm>
#include <array>

#include "stats/metrics.h"

namespace tubed::stats {

using protocol::BlockSink;
using protocol::Decimal;
using protocol::Plain;
using protocol::Text;
using protocol::Value;

namespace {

template <class State>
void write_rows(Rows<State> rows, const State& state, BlockSink& block) {
  for (const Row<State>& row : rows) {
    if (row.key.empty() || (row.shown != nullptr && !row.shown(state))) continue;
    if (row.number != nullptr) block.member(row.key, row.number(state));
    if (row.text != nullptr) block.member(row.key, Text{row.text(state)});
    if (row.plain != nullptr) block.member(row.key, Plain{row.plain(state)});
    if (row.composed != nullptr) block.member(row.key, Text{row.composed(state)});
    if (row.flag != nullptr) block.member(row.key, row.flag(state));
    if (row.seconds != nullptr) block.member(row.key, row.seconds(state));
  }
}

template <class State>
void append_texts(Rows<State> rows, std::vector<StatsText>& texts) {
  for (const Row<State>& row : rows) {
    if (!row.key.empty()) texts.push_back({std::string(row.key), std::string(row.meaning)});
  }
}

void write_command_counts(CommandCounts commands, CounterPlace place, BlockSink& block) {
  std::string key(kCounterPrefix);
  for (const CommandCount& command : commands) {
    if (command.place != place) continue;
    key.resize(kCounterPrefix.size());
    key.append(command.command);
    block.member(key, command.count);
  }
}

void append_command_texts(CommandCounts commands, CounterPlace place,
                          std::vector<StatsText>& texts) {
  for (const CommandCount& command : commands) {
    if (command.place != place) continue;
    texts.push_back({counter_key(command), counter_meaning(command)});
  }
}

}  // namespace

void write_server_stats(const ServerState& server, BlockSink& block) {
  write_rows(job_count_rows(), server, block);
  write_command_counts(server.commands, CounterPlace::beanstalkd, block);
  write_rows(beanstalkd_rows(), server, block);
  write_command_counts(server.commands, CounterPlace::own, block);
  write_rows(own_rows(), server, block);
  write_command_counts(server.commands, CounterPlace::last, block);
  write_rows(newest_rows(), server, block);
  if (server.cluster != nullptr) write_rows(cluster_rows(), *server.cluster, block);
}

void write_tube_stats(const engine::TubeInfo& tube, BlockSink& block) {
  write_rows(tube_rows(), tube, block);
}

void write_job_stats(const engine::JobInfo& job, const FactLog& log, BlockSink& block) {
  write_rows(job_rows(), {job, log.segment_of(job.id)}, block);
}

void write_tube_times(const engine::TubeInfo& tube, BlockSink& block) {
  constexpr auto kColumns = std::to_array<std::string_view>({"seconds", "queue", "processing"});
  block.begin_table({.names = kColumns});
  if (tube.put_to_reserve == nullptr) return block.end_table(0);
  const HistogramCounts queue = tube.put_to_reserve->counts();
  const HistogramCounts processing = tube.reserve_to_delete->counts();
  for (std::size_t i = 0; i <= queue.bounds.size(); ++i) {
    const bool is_last = i == queue.bounds.size();
    const std::string bound = is_last ? std::string() : bound_text(queue, i);
    const Value seconds = is_last ? Value(Plain{"more"}) : Value(Decimal{bound});
    block.row(std::array<Value, 3>{seconds, queue.counts[i], processing.counts[i]});
  }
  block.end_table(0);
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
