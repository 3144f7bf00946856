// TubeRegistry: the life of tubes.
//
// A tube is created by the first use, watch, put or move that names it, with its metrics and its
// policy, and is removed when no session, job, pause or policy needs it. Each place that drops such
// a need calls remove_if_unwanted(). The tube "default" is always there.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/policies.h"
#include "engine/tube_activity.h"
#include "facts/types.h"
#include "tables/deadline_index.h"
#include "tables/expiries.h"
#include "tables/flushed_jobs.h"
#include "tables/reservation_limits.h"
#include "tables/tube_metrics.h"
#include "tables/tube_table.h"

namespace tubed::engine {

class TubeRegistry {
 public:
  // All of them outlive it. `extended` becomes true with the first policy. Creates "default".
  TubeRegistry(const Limits& limits, TubeTable& tubes, TubeMetricsRegistry& metrics,
               TubeActivity& activity, const Policies& policies, DeadlineIndex& deadlines,
               FlushedJobs& flushed, Expiries& expiries, ReservationLimits& reservation_limits,
               bool& extended);

  Tube* default_tube() const { return default_tube_; }

  // Null: it would be one tube too many. O(log tubes).
  Tube* find_or_add(Time now, std::string_view name) {
    Tube* tube = tubes_.find(name);
    if (tube != nullptr) return tube;
    return tubes_.size() >= limits_.tubes ? nullptr : add(now, name);
  }
  // The same beyond the limit, for a job that was accepted. O(log tubes).
  Tube* find_or_add_for_job(Time now, std::string_view name) {
    Tube* tube = tubes_.find(name);
    return tube == nullptr ? add(now, name) : tube;
  }
  // True: find_or_add() would find or add it. O(log tubes).
  bool has_room_for(std::string_view name) const {
    return tubes_.size() < limits_.tubes || tubes_.find(name) != nullptr;
  }
  // O(1) for a tube that stays, else O(log tubes).
  void remove_if_unwanted(Time now, Tube* tube) {
    if (tube != default_tube_ && !tube->wanted()) remove(now, tube);
  }
  // Begins or ends the pause of the tube. Called after `pause_until` has changed. O(log tubes).
  void set_paused(Tube* tube, bool paused);

  // The policy of the tube is new. O(patterns).
  [[gnu::cold]] void apply_policy(Tube* tube);
  // The patterns are new, and apply_patterns() has something to do while has_old_patterns().
  void begin_patterns() { with_old_patterns_ = tubes_.size(); }
  bool has_old_patterns() const { return with_old_patterns_ > 0; }
  // Applies them to `budget` tubes at most. O(budget * patterns).
  [[gnu::cold]] void apply_patterns(Time now, std::uint32_t budget);

 private:
  Tube* add(Time now, std::string_view name);
  void remove(Time now, Tube* tube);

  const Limits& limits_;
  TubeTable& tubes_;
  TubeMetricsRegistry& metrics_;
  TubeActivity& activity_;
  const Policies& policies_;
  DeadlineIndex& deadlines_;
  FlushedJobs& flushed_;
  Expiries& expiries_;
  ReservationLimits& reservation_limits_;
  bool& extended_;
  // The number of tubes at the front of the list that may have policies of former patterns.
  std::size_t with_old_patterns_ = 0;
  Tube* default_tube_;
};

}  // namespace tubed::engine
