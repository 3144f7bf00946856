// Engine: kicking jobs, and the slices of commands that concern many jobs of a tube.
#include <algorithm>

#include "engine/engine.h"
#include "engine/job_facts.h"

namespace tubed::engine {

void Engine::kick_one(Job* job, Output& out) {
  ++job->history().counters.kicks;
  if (lives_.governs(*job)) [[unlikely]]
    lives_.renew(*job);
  moves_.make_ready(job);
  emit_placed(*job, out);
}

bool Engine::kick_job(Time now, JobId id, TimeSpan delay, Output& out) {
  Job* job = jobs_.find_present(id);
  if (job == nullptr) return false;
  if (job->state != JobState::buried && job->state != JobState::delayed) return false;
  if (delay.seconds.count > 0) {
    ++job->history().counters.kicks;
    if (lives_.governs(*job)) lives_.renew(*job);
    if (job->groups() != nullptr) job->groups()->end_waiting();
    moves_.detach(job);
    job->set_delay(delay.seconds);
    moves_.attach_delayed(job, now + delay);
    emit_placed(*job, out);
    return true;
  }
  kick_one(job, out);
  serve_waiting(now, out);
  return true;
}

Slices Engine::begin_kick(std::string_view name, std::uint64_t bound) const {
  const Tube* tube = tubes_.find(name);
  const bool buried = tube != nullptr && !tube->buried.empty();
  return begin_kick(name, buried ? JobState::buried : JobState::delayed, bound);
}

Slices Engine::begin_kick(std::string_view name, JobState state, std::uint64_t bound) const {
  return slices(name, state, bound);
}

Slices Engine::slices(std::string_view name, JobState state, std::uint64_t bound) const {
  const Tube* tube = tubes_.find(name);
  if (tube == nullptr) return {};
  return {.tube = {.index = tube->index, .number = tube->number},
          .state = state,
          .left = std::min<std::uint64_t>(bound, tube->count_of(state))};
}

std::uint32_t Engine::kick(Time now, Slices& kick, Output& out) {
  const Tube* tube = tubes_.find(kick.tube);
  std::uint32_t moved = 0;
  for (; kick.left > 0 && moved < limits_.work_per_turn; --kick.left, ++moved) {
    // Other sessions may have taken jobs since the last slice.
    Job* job = tube == nullptr ? nullptr : tube->first(kick.state);
    if (job == nullptr) {
      kick.left = 0;
      break;
    }
    kick_one(job, out);
  }
  serve_waiting(now, out);
  return moved;
}

}  // namespace tubed::engine
