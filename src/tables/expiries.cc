#include "tables/expiries.h"

#include <utility>

namespace tubed::engine {

void Expiries::set(Job& job) {
  const LifeRecord* life = job.life();
  const TubeRules* rules = job.tube->rules.get();
  Seconds ttl = rules == nullptr ? Seconds() : rules->policy.ttl;
  if (life != nullptr && life->time_to_live) ttl = *life->time_to_live;
  const bool expired_before = life != nullptr && life->marks.reason == DeathReason::expired;
  if (ttl.count > 0 && !expired_before) {
    LifeRecord& limited = records_.make_life(job);
    limited.expires = job.created + ttl;
    heap_.set(true, {limited.expires, job.id}, &limited);
  } else if (life != nullptr) {
    job.life()->expires = kNever;
    heap_.set(false, {}, job.life());
    records_.drop_empty(job);
  }
}

void Expiries::free_life(Job& job) {
  heap_.set(false, {}, job.life());
  records_.free_life(job);
}

Job* Expiries::take_next() {
  LifeRecord* life = heap_.top();
  heap_.erase(life);
  return life->job;
}

void Expiries::withhold(Tube* tube) {
  tube->set_withheld(Withheld::expiry_late, true);
  tubes_.update_giving(tube);
  withheld_.push_back({.index = tube->index, .number = tube->number});
}

void Expiries::give_again() {
  for (const TubeRef& withheld : std::exchange(withheld_, {})) {
    Tube* tube = tubes_.find(withheld);
    tube->set_withheld(Withheld::expiry_late, false);
    tubes_.update_giving(tube);
    serve_queue_.push(tube);
  }
}

void Expiries::forget(const Tube& tube) {
  std::erase_if(withheld_, [&](const TubeRef& ref) { return ref.number == tube.number; });
}

}  // namespace tubed::engine
