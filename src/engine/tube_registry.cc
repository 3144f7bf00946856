#include "engine/tube_registry.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tubed::engine {

TubeRegistry::TubeRegistry(const Limits& limits, TubeTable& tubes, TubeMetricsRegistry& metrics,
                           TubeActivity& activity, const Policies& policies,
                           DeadlineIndex& deadlines, FlushedJobs& flushed, Expiries& expiries,
                           ReservationLimits& reservation_limits, bool& extended)
    : limits_(limits),
      tubes_(tubes),
      metrics_(metrics),
      activity_(activity),
      policies_(policies),
      deadlines_(deadlines),
      flushed_(flushed),
      expiries_(expiries),
      reservation_limits_(reservation_limits),
      extended_(extended),
      default_tube_(add(Time(), kDefaultTube)) {}

Tube* TubeRegistry::add(Time now, std::string_view name) {
  Tube* tube = tubes_.add(name);
  tube->metrics = metrics_.open(name, tube, limits_, now);
  if (policies_.any()) [[unlikely]]
    apply_policy(tube);
  return tube;
}

void TubeRegistry::remove(Time now, Tube* tube) {
  metrics_.close(tube->metrics, limits_, now);
  activity_.removed(*tube);
  if (tube->rules != nullptr) deadlines_.set_rate_used(tube->rules.get(), false);
  if (expiries_.has_withheld()) expiries_.forget(*tube);
  const bool is_referred_to = tube->unremoved_flushes > 0;
  std::unique_ptr<Tube> removed = tubes_.remove(tube);
  if (is_referred_to) flushed_.keep(std::move(removed));
}

void TubeRegistry::set_paused(Tube* tube, bool paused) {
  if (tube->paused()) --tube->metrics->paused_count;
  if (paused) ++tube->metrics->paused_count;
  deadlines_.set_paused(tube, paused);
}

void TubeRegistry::apply_policy(Tube* tube) {
  const std::unique_ptr<Policy> policy = policies_.of(tube->name);
  if (policy != nullptr) extended_ = true;
  reservation_limits_.apply(tube, policy.get());
}

// From the last tube of the list to the first: when a tube is removed, the last takes its place.
// Such a tube may come twice, which changes nothing.
void TubeRegistry::apply_patterns(Time now, std::uint32_t budget) {
  for (; budget > 0 && with_old_patterns_ > 0; --budget) {
    with_old_patterns_ = std::min(with_old_patterns_, tubes_.size()) - 1;
    Tube* tube = tubes_.all()[with_old_patterns_].get();
    apply_policy(tube);
    remove_if_unwanted(now, tube);
  }
}

}  // namespace tubed::engine
