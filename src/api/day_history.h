// DayHistory: one point a minute over the last day, of the server and of its busiest tubes.
//
// The caller samples every few seconds, and what was counted since the sample before goes to the
// point of the present minute. A sample reads kTubesPerSample tubes, to find the busiest, and each
// tube that has a history: the work does not grow with the number of tubes.
//
// At most kMostTubes tubes have a history. After a walk over all tubes, those that were busier than
// any of them take the places of the least busy. A tube that loses its place loses its history.
// "Busy" counts puts, reserves and deletes; those of kHalfLife ago count half. A tube has to be
// busier by a quarter, so tubes that are equally busy do not take turns.
//
// Time passes by a clock that is never stepped. If the wall clock is stepped by a minute or more,
// the points that were added by this process are moved with it, and no minute is counted twice or
// left out. A time in which no samples were taken is a gap.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/series.h"
#include "base/result.h"
#include "base/time.h"
#include "engine/engine.h"
#include "facts/role.h"
#include "protocol/block.h"

namespace tubed::api {

class DayHistory {
 public:
  static constexpr std::chrono::minutes kInterval{1};
  static constexpr std::size_t kMinutes = 24 * 60;
  static constexpr std::size_t kMostTubes = 50;
  static constexpr std::uint32_t kTubesPerSample = 500;
  static constexpr std::chrono::minutes kHalfLife{10};
  // After a longer time without a sample, the numbers between are left out.
  static constexpr Duration kLongestPause = std::chrono::minutes(1);
  // The numbers of a point: lines of stats at the end of the minute, and what was counted in it.
  static constexpr auto kGauges = std::to_array<std::string_view>(
      {"current-jobs-ready", "current-jobs-reserved", "current-jobs-delayed", "current-jobs-buried",
       "current-connections", "current-workers", "current-waiting", "job-memory", "journal-bytes",
       "journal-live-bytes"});
  static constexpr auto kTubeGauges =
      std::to_array<std::string_view>({"ready", "reserved", "delayed", "buried"});
  static constexpr auto kCounts =
      std::to_array<std::string_view>({"puts", "reserves", "deletes", "timeouts"});
  // The size of a file is at most this.
  static constexpr std::size_t kMostFileBytes = 4 << 20;

  // The same moment by two clocks: since 1970, and by a clock that is never stepped and runs while
  // the machine is suspended.
  struct Moment {
    Duration wall{};
    Time steady;
  };

  // Takes a sample of the server and of the tubes. O(kTubesPerSample + kMostTubes log tubes); after
  // a step of the wall clock also O(points).
  void sample(const Moment& now, const protocol::Block& stats, engine::Engine& engine);

  // {"interval":60,"columns":["time","seconds",…],"samples":[[…],…],"tubes":[…]}: the last day.
  // `time` is the begin of the minute, `seconds` how much of it is known. `tubes`: those that have
  // a history and that the role may use, by name; null: all. O(points).
  std::string to_json(const Role* role) const;
  // The last minutes of a tube, without `tubes`. No value: it has no history. O(points).
  std::optional<std::string> tube_json(std::string_view name, std::size_t minutes) const;
  // The same of a tube without a history: no samples.
  static std::string empty_tube_json();

  // A file with all points, to be load()ed by a later process. O(points of all tubes).
  std::string to_file(Duration wall) const;
  // Takes the points of a file, in place of its own. The error is the reason why there are none:
  // the file is damaged, of another version, or from the future. O(bytes).
  Result<void> load(std::string_view file, Duration wall);

  // The memory of the points, in bytes. O(kMostTubes).
  std::size_t memory_bytes() const;

 private:
  using ServerSeries = Series<std::uint64_t, kGauges.size(), kCounts.size()>;
  using TubeSeries = Series<std::uint32_t, kTubeGauges.size(), kCounts.size()>;

  // The counters that a sample has read.
  struct Counted {
    std::uint64_t tube = 0;  // its number
    ServerSeries::Counts counts{};
  };
  struct TubeHistory {
    std::string name;
    TubeSeries series = {};
    std::optional<Counted> last = std::nullopt;
    float recent = 0;             // ActiveTube::recent
    std::uint32_t last_seen = 0;  // the last minute in which the tube existed
  };
  struct Candidate {
    float recent = 0;
    std::string name;
  };
  // A sample: the minute, and the time since the sample before; no value if the numbers between
  // are left out.
  struct Step {
    std::uint32_t minute = 0;
    std::optional<std::chrono::milliseconds> passed;
  };

  static std::uint32_t minute_of(Duration wall) {
    return static_cast<std::uint32_t>(std::max<std::int64_t>(wall / kInterval, 0));
  }
  Step begin_step(const Moment& now);
  void shift(std::int64_t minutes);
  void walk(const Moment& now, engine::Engine& engine);
  void begin_walk(const Moment& now);
  void consider(const engine::ActiveTube& tube);
  void give_places();
  void sample_tube(const Step& step, engine::TubeActivity& activity, TubeHistory& tube) const;
  void sample_server(const Step& step, const protocol::Block& stats,
                     const engine::TubeActivity::Totals& totals);
  bool has(std::string_view name) const;
  std::uint32_t since(std::size_t minutes) const;

  ServerSeries server_;
  std::vector<TubeHistory> tubes_;
  // The clocks at the last sample. No value: there was none.
  std::optional<Moment> last_;
  std::uint32_t begin_ = 0;                      // the minute of the first sample of this process
  std::uint32_t newest_ = 0;                     // the minute of the last sample
  std::optional<ServerSeries::Counts> counted_;  // of the server, at the last sample

  // The walk over the tubes.
  std::uint64_t next_ = 0;  // the place of the next tube; 0: a walk begins
  bool walked_ = false;     // at least once over all tubes
  Time walk_begin_;
  float kept_ = 1;               // of what was recent before the walk
  std::vector<Candidate> best_;  // a heap of the busiest tubes of the walk, the least busy first
};

}  // namespace tubed::api
