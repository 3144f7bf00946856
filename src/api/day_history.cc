#include "api/day_history.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "json/json.h"

namespace tubed::api {

using engine::ActiveTube;
using engine::TubeActivity;

namespace {

constexpr std::chrono::minutes kMinute{1};
// How much busier than the least busy a tube has to be to take its place.
constexpr float kBusier = 1.25F;

// Takes the lines of stats that a point has.
class StatsNumbers final : public protocol::BlockSink {
 public:
  void member(std::string_view key, const protocol::Value& value) override {
    const auto* number = std::get_if<std::uint64_t>(&value);
    if (number == nullptr) return;
    if (key == "total-jobs") total_jobs = *number;
    if (key == "job-timeouts") timeouts = *number;
    const auto found = std::ranges::find(DayHistory::kGauges, key);
    if (found != DayHistory::kGauges.end())
      gauges[static_cast<std::size_t>(found - DayHistory::kGauges.begin())] = *number;
  }

  std::array<std::uint64_t, DayHistory::kGauges.size()> gauges{};
  std::uint64_t total_jobs = 0;
  std::uint64_t timeouts = 0;
};

using Counts = std::array<std::uint64_t, DayHistory::kCounts.size()>;

// No value: a counter has begun again.
std::optional<Counts> difference(const Counts& before, const Counts& after) {
  Counts counts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (after[i] < before[i]) return std::nullopt;
    counts[i] = after[i] - before[i];
  }
  return counts;
}

template <class Points>
std::string series_json(const Points& series, std::span<const std::string_view> gauges,
                        std::uint32_t since) {
  std::string text = fmt::format(
      "{{\"interval\":{},\"columns\":[\"time\",\"seconds\",\"{}\",\"{}\"],\"samples\":[",
      whole_seconds(DayHistory::kInterval), fmt::join(gauges, "\",\""),
      fmt::join(DayHistory::kCounts, "\",\""));
  bool is_first = true;
  series.visit(since, [&](const auto& point) {
    const std::uint32_t seconds = std::max((point.milliseconds + 500) / 1000, 1U);
    fmt::format_to(std::back_inserter(text), "{}[{},{},{}]", is_first ? "" : ",",
                   std::uint64_t{point.minute} * 60, seconds, fmt::join(point.numbers, ","));
    is_first = false;
  });
  return text + ']';
}

}  // namespace

// --- Sampling

void DayHistory::sample(const Moment& now, const protocol::Block& stats, engine::Engine& engine) {
  const Step step = begin_step(now);
  walk(now, engine);
  for (TubeHistory& tube : tubes_) sample_tube(step, engine.tube_activity(), tube);
  sample_server(step, stats, engine.tube_activity().totals());
}

DayHistory::Step DayHistory::begin_step(const Moment& now) {
  std::optional<std::chrono::milliseconds> passed;
  if (last_) {
    const Duration since_last = now.steady - last_->steady;
    const Duration stepped = now.wall - last_->wall - since_last;
    if (stepped <= -kMinute || stepped >= kMinute)
      shift(std::chrono::round<std::chrono::minutes>(stepped).count());
    if (since_last <= kLongestPause)
      passed = std::chrono::duration_cast<std::chrono::milliseconds>(since_last);
  } else {
    begin_ = minute_of(now.wall);
  }
  last_ = now;
  newest_ = minute_of(now.wall);
  return {.minute = newest_, .passed = passed};
}

void DayHistory::shift(std::int64_t minutes) {
  minutes = std::max(minutes, -std::int64_t{begin_});
  server_.shift(begin_, minutes);
  for (TubeHistory& tube : tubes_) {
    tube.series.shift(begin_, minutes);
    tube.last_seen = static_cast<std::uint32_t>(std::max(tube.last_seen + minutes, std::int64_t{}));
  }
  begin_ = static_cast<std::uint32_t>(begin_ + minutes);
}

void DayHistory::sample_server(const Step& step, const protocol::Block& stats,
                               const TubeActivity::Totals& totals) {
  StatsNumbers numbers;
  stats.write(numbers);
  const Counts now = {numbers.total_jobs, totals.reserves, totals.deletes, numbers.timeouts};
  if (counted_ && step.passed) {
    const auto counts = difference(*counted_, now);
    if (counts) server_.add(step.minute, *step.passed, numbers.gauges, *counts);
  }
  // Before the end of the first walk, the totals have only some of the tubes.
  if (walked_) counted_ = now;
}

// A tube that does not exist has no jobs, and nothing happens to it.
void DayHistory::sample_tube(const Step& step, TubeActivity& activity, TubeHistory& tube) const {
  const std::optional<ActiveTube> found = activity.find(tube.name);
  Counted now;
  TubeSeries::Gauges gauges{};
  if (found) {
    gauges = {found->jobs.ready, found->jobs.reserved, found->jobs.delayed, found->jobs.buried};
    now = {.tube = found->number,
           .counts = {found->total_jobs, found->reserve_count, found->delete_count,
                      found->timeout_count}};
    tube.recent = found->recent;
    tube.last_seen = step.minute;
  }
  if (tube.last && step.passed) {
    Counts counts = now.counts;
    if (tube.last->tube == now.tube)
      counts = difference(tube.last->counts, now.counts).value_or(now.counts);
    tube.series.add(step.minute, *step.passed, gauges, counts);
  }
  tube.last = now;
}

// --- The busiest tubes

void DayHistory::walk(const Moment& now, engine::Engine& engine) {
  if (next_ == 0) begin_walk(now);
  next_ = engine.tube_activity().visit(next_, kTubesPerSample, kept_,
                                       [this](const ActiveTube& tube) { consider(tube); });
  if (next_ != 0) return;
  walked_ = true;
  give_places();
}

void DayHistory::begin_walk(const Moment& now) {
  if (walked_) {
    const std::chrono::duration<float> passed = now.steady - walk_begin_;
    kept_ = std::exp2(-passed / std::chrono::duration<float>(kHalfLife));
    // A tube that exists is read again, which replaces this.
    for (TubeHistory& tube : tubes_) tube.recent *= kept_;
  }
  walk_begin_ = now.steady;
  best_.clear();
}

void DayHistory::consider(const ActiveTube& tube) {
  if (best_.size() == kMostTubes) {
    if (tube.recent <= best_.front().recent) return;
    std::ranges::pop_heap(best_, std::greater(), &Candidate::recent);
    best_.pop_back();
  }
  best_.push_back({.recent = tube.recent, .name = std::string(tube.name)});
  std::ranges::push_heap(best_, std::greater(), &Candidate::recent);
}

void DayHistory::give_places() {
  std::erase_if(tubes_,
                [this](const TubeHistory& tube) { return tube.last_seen + kMinutes < newest_; });
  std::ranges::sort_heap(best_, std::greater(), &Candidate::recent);
  for (const Candidate& tube : best_) {
    if (has(tube.name)) continue;
    TubeHistory added{.name = tube.name, .recent = tube.recent, .last_seen = newest_};
    if (tubes_.size() < kMostTubes) {
      tubes_.push_back(std::move(added));
      continue;
    }
    const auto least = std::ranges::min_element(tubes_, {}, &TubeHistory::recent);
    if (tube.recent <= least->recent * kBusier) break;
    *least = std::move(added);
  }
}

bool DayHistory::has(std::string_view name) const {
  return std::ranges::find(tubes_, name, &TubeHistory::name) != tubes_.end();
}

// --- What it shows

std::uint32_t DayHistory::since(std::size_t minutes) const {
  return newest_ - static_cast<std::uint32_t>(std::min<std::size_t>(newest_, minutes - 1));
}

std::string DayHistory::to_json(const Role* role) const {
  std::string text = series_json(server_, kGauges, since(kMinutes)) + ",\"tubes\":[";
  std::vector<std::string_view> names;
  for (const TubeHistory& tube : tubes_) {
    if (role == nullptr || may_use(*role, tube.name)) names.emplace_back(tube.name);
  }
  std::ranges::sort(names);
  for (const std::string_view name : names) {
    if (text.back() != '[') text += ',';
    json::append_text(name, text);
  }
  return text + "]}\n";
}

std::optional<std::string> DayHistory::tube_json(std::string_view name, std::size_t minutes) const {
  const auto found = std::ranges::find(tubes_, name, &TubeHistory::name);
  if (found == tubes_.end()) return std::nullopt;
  return series_json(found->series, kTubeGauges, since(minutes)) + "}\n";
}

std::string DayHistory::empty_tube_json() {
  return series_json(TubeSeries(), kTubeGauges, 0) + "}\n";
}

std::size_t DayHistory::memory_bytes() const {
  std::size_t bytes = server_.memory_bytes();
  for (const TubeHistory& tube : tubes_) bytes += sizeof tube + tube.series.memory_bytes();
  return bytes;
}

}  // namespace tubed::api
