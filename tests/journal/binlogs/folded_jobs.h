// FoldedJobs: the jobs that result from facts, as owned copies. Also checks that each fact is valid
// after the previous facts.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "facts/fact.h"

namespace tubed::journal {

struct FoldedJob {
  std::string tube;
  Seconds ttr;
  Time created;
  std::string body;
  Placement place;
  JobCounters counters;

  friend bool operator==(const FoldedJob&, const FoldedJob&) = default;
};

class FoldedJobs final : public FactSink {
 public:
  void fact(const Fact& fact) override {
    ++facts_;
    if (const Added* added = added_in(fact)) {
      const auto [job, is_new] = jobs_.try_emplace(
          added->id, FoldedJob{std::string(added->tube), added->ttr, added->created,
                               std::string(added->body.view()), added->place, added->counters});
      TUBED_ASSERT(is_new);
      check(added->place);
      TUBED_ASSERT(added->id > 0 && added->ttr.count > 0 && added->body);
      TUBED_ASSERT(!added->tube.empty() && added->tube.size() <= kMaxTubeNameBytes);
    } else if (const auto* placed = std::get_if<Placed>(&fact)) {
      check(placed->place);
      FoldedJob& job = jobs_.at(placed->id);
      job.place = placed->place;
      job.counters = placed->counters;
    } else if (const auto* removed = std::get_if<Removed>(&fact)) {
      last_removed_ = removed->id;
      jobs_.erase(removed->id);
    } else {
      TUBED_ASSERT(false);  // beanstalkd stores no pauses
    }
  }

  const std::map<JobId, FoldedJob>& jobs() const { return jobs_; }
  std::uint64_t facts() const { return facts_; }
  JobId last_removed() const { return last_removed_; }

  // Returns the buried jobs of one tube in the order of burial.
  std::vector<JobId> buried(const std::string& tube) const {
    std::vector<std::pair<std::uint64_t, JobId>> order;
    for (const auto& [id, job] : jobs_) {
      if (job.tube != tube || job.place.state != JobState::buried) continue;
      order.emplace_back(job.place.bury_order, id);
    }
    std::sort(order.begin(), order.end());
    std::vector<JobId> ids;
    for (const auto& [place, id] : order) ids.push_back(id);
    return ids;
  }

 private:
  static void check(const Placement& place) {
    TUBED_ASSERT(place.state != JobState::reserved);
    TUBED_ASSERT((place.state == JobState::buried) == (place.bury_order != 0));
    TUBED_ASSERT(place.state == JobState::delayed || place.until == Time());
  }

  std::map<JobId, FoldedJob> jobs_;
  std::uint64_t facts_ = 0;
  JobId last_removed_ = 0;
};

}  // namespace tubed::journal
