#include "tables/reservation_limits.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tables/tube_metrics.h"

namespace tubed::engine {

namespace {

// Called after the number of reserved jobs has changed. Precondition: the tube has a policy.
void limit_reserved(Tube& tube) {
  const std::uint32_t most = tube.rules->policy.max_reserved;
  tube.set_withheld(Withheld::max_reserved, most > 0 && tube.reserved.size() >= most);
}

}  // namespace

void ReservationLimits::apply(Tube* tube, const Policy* policy) {
  auto rules = std::move(tube->rules);
  const Policy::Rate rate = policy == nullptr ? Policy::Rate() : policy->rate;
  if (rules != nullptr && rules->policy.rate != rate) {
    deadlines_.set_rate_used(rules.get(), false);
    tube->set_withheld(Withheld::rate, false);
    rules->rate_used_until = Time::min();
  }
  tube->set_withheld(Withheld::max_reserved, false);
  if (policy != nullptr) {
    if (rules == nullptr) rules = std::make_unique<TubeRules>(tube);
    rules->policy = *policy;
    tube->rules = std::move(rules);
    limit_reserved(*tube);
  }
  tubes_.update_giving(tube);
  serve_queue_.push(tube);
}

void ReservationLimits::count(Time now, Tube* tube) {
  limit_reserved(*tube);
  TubeRules& rules = *tube->rules;
  const auto [count, seconds] = rules.policy.rate;
  if (count > 0) {
    const Duration share = Duration(seconds) / count;
    rules.rate_used_until = std::max(rules.rate_used_until, now) + share;
    rules.rate_until = rules.rate_used_until - share * (count - 1);
    const bool used_up = rules.rate_until > now;
    if (used_up) ++tube->metrics->rate_limited_count;
    tube->set_withheld(Withheld::rate, used_up);
    deadlines_.set_rate_used(&rules, used_up);
  }
  tubes_.update_giving(tube);
}

void ReservationLimits::recount(Tube* tube) {
  limit_reserved(*tube);
  tubes_.update_giving(tube);
  serve_queue_.push(tube);
}

void ReservationLimits::end_rates(Time now, std::uint32_t budget) {
  for (; budget > 0; --budget) {
    TubeRules* rules = deadlines_.due_rate(now);
    if (rules == nullptr) return;
    deadlines_.set_rate_used(rules, false);
    rules->tube->set_withheld(Withheld::rate, false);
    tubes_.update_giving(rules->tube);
    serve_queue_.push(rules->tube);
  }
}

}  // namespace tubed::engine
