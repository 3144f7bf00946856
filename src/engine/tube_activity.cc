#include "engine/tube_activity.h"

namespace tubed::engine {

std::optional<ActiveTube> TubeActivity::find(std::string_view name) {
  Tube* tube = tubes_.find(name);
  if (tube == nullptr) return std::nullopt;
  ++entries_walked_;
  return read(*tube);
}

ActiveTube TubeActivity::read(Tube& tube) {
  count(tube);
  return {.name = tube.name,
          .number = tube.number,
          .jobs = {.ready = tube.count_of(JobState::ready),
                   .reserved = tube.reserved.size(),
                   .delayed = tube.delayed.size(),
                   .buried = tube.buried.size()},
          .total_jobs = tube.total_jobs,
          .reserve_count = tube.reserve_count,
          .delete_count = tube.delete_count,
          .timeout_count = tube.timeout_count,
          .recent = tube.sampled.recent};
}

void TubeActivity::count(Tube& tube) {
  SampledCounters& sampled = tube.sampled;
  const std::uint64_t reserves = tube.reserve_count - sampled.reserve_count;
  const std::uint64_t deletes = tube.delete_count - sampled.delete_count;
  const std::uint64_t added = tube.total_jobs - sampled.total_jobs;
  totals_.reserves += reserves;
  totals_.deletes += deletes;
  sampled.recent += static_cast<float>(added + reserves + deletes);
  sampled.total_jobs = tube.total_jobs;
  sampled.reserve_count = tube.reserve_count;
  sampled.delete_count = tube.delete_count;
}

}  // namespace tubed::engine
