// TubeActivity: how busy the tubes are, for the history of the HTTP API.
//
// It reads the counters that each tube has, only when it is asked: a put, a reserve or a delete
// costs nothing more. A tube keeps what was read last (SampledCounters). The remainder of a tube
// that is removed counts in the totals, so they miss nothing, however short the life of a tube.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "facts/info.h"
#include "tables/tube_table.h"

namespace tubed::engine {

// A tube at the moment at which it is read.
struct ActiveTube {
  std::string_view name;     // valid until the engine's next change
  std::uint64_t number = 0;  // another tube of the same name has another number
  StateCounts jobs;          // without `urgent` and `held`
  // Since the tube was created.
  std::uint64_t total_jobs = 0;
  std::uint64_t reserve_count = 0;
  std::uint64_t delete_count = 0;
  std::uint64_t timeout_count = 0;
  float recent = 0;  // puts, reserves and deletes; older ones count for less
};

class TubeActivity {
 public:
  // Of all tubes that ever were, as far as they have been read. They grow only.
  struct Totals {
    std::uint64_t reserves = 0;
    std::uint64_t deletes = 0;
  };

  // Both outlive it.
  TubeActivity(const TubeTable& tubes, std::uint64_t& entries_walked)
      : tubes_(tubes), entries_walked_(entries_walked) {}

  // Reads `limit` tubes at most, as Queries::visit_tubes() visits them, and calls
  // visit(const ActiveTube&) for each. Weights the activity counted before by `kept`, 0 to 1.
  // O(limit).
  template <class Visit>
  std::uint64_t visit(std::uint64_t from, std::uint32_t limit, float kept, Visit visit) {
    const auto& all = tubes_.all();
    std::uint64_t place = from;
    for (std::uint32_t visited = 0; place < all.size() && visited < limit; ++place, ++visited) {
      ++entries_walked_;
      Tube& tube = *all[place];
      tube.sampled.recent *= kept;
      visit(read(tube));
    }
    return place < all.size() ? place : 0;
  }
  // Reads this tube. No value: no such tube. O(log tubes).
  std::optional<ActiveTube> find(std::string_view name);
  // The tube is removed. O(1).
  void removed(Tube& tube) { count(tube); }

  const Totals& totals() const { return totals_; }

 private:
  ActiveTube read(Tube& tube);
  void count(Tube& tube);

  const TubeTable& tubes_;
  std::uint64_t& entries_walked_;
  Totals totals_;
};

}  // namespace tubed::engine
