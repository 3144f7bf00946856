// History: samples of the server's counters in the last hour, the oldest first to go.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "protocol/block.h"

namespace tubed::api {

class History {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(5);
  static constexpr std::size_t kSamples = 720;
  // The lines of stats that are kept.
  static constexpr auto kKeys = std::to_array<std::string_view>(
      {"current-jobs-ready", "current-jobs-reserved", "current-jobs-delayed", "current-jobs-buried",
       "total-jobs", "job-timeouts", "cmd-delete", "current-connections", "current-workers",
       "current-waiting", "job-memory", "journal-bytes", "journal-live-bytes"});

  // Keeps a sample of a block of stats. `seconds`: since 1970. O(block).
  void add(std::uint64_t seconds, const protocol::Block& stats);
  // {"interval":5,"columns":["time",…],"samples":[[…],…]}. O(samples).
  std::string to_json() const;
  void clear() {
    samples_.clear();
    oldest_ = 0;
  }

 private:
  using Sample = std::array<std::uint64_t, kKeys.size() + 1>;  // the time first

  std::vector<Sample> samples_;  // a ring
  std::size_t oldest_ = 0;
};

}  // namespace tubed::api
