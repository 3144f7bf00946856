// Engine: moving jobs to other tubes, and changing where they rest.
//
// A job that moves keeps its id, its age and its counters, so it is before younger jobs of its
// priority. The facts are `Placed`, if the job comes to rest in another place or has other marks,
// and then `Moved`, if its tube is another; both are one unit. So a buried job is already the last
// of the buried when it moves.
#include "base/planted.h"
#include "engine/engine.h"
#include "engine/job_facts.h"

namespace tubed::engine {

Engine::MoveResult Engine::move_job(SessionId session, Time now, JobId id, std::string_view tube,
                                    const std::optional<NewPlace>& place, Output& out) {
  Job* job = jobs_.find_present(id);
  if (job == nullptr) return MoveResult::not_found;
  const bool reserved = job->state == JobState::reserved;
  if (reserved && !holds(session, *job)) return MoveResult::not_found;
  Tube* to = registry_.find_or_add(now, tube);
  if (to == nullptr) return MoveResult::too_many_tubes;
  if (to != job->tube && is_full(*to)) return MoveResult::tube_full;
  move_to(now, job, to, place, out);
  serve_waiting(now, out);
  return MoveResult::moved;
}

Slices Engine::begin_move(std::string_view tube, JobState state, std::uint64_t bound) const {
  return slices(tube, state, bound);
}

std::optional<std::uint32_t> Engine::move_slice(Time now, Slices& move, std::string_view tube,
                                                Output& out) {
  std::uint32_t moved = 0;
  for (; move.left > 0 && moved < limits_.work_per_turn; --move.left, ++moved) {
    // Other sessions may have taken jobs since the last slice.
    Tube* from = tubes_.find(move.tube);
    Job* job = from == nullptr ? nullptr : first_of(from, move.state);
    // A job that stays would be the first again, and be moved instead of all others.
    const bool stays = from != nullptr && from->name == tube && !TUBED_PLANTED(moves_to_own_tube);
    if (job == nullptr || stays) {
      move.left = 0;
      break;
    }
    Tube* to = registry_.find_or_add(now, tube);
    if (to == nullptr || (to != from && is_full(*to))) {
      move.left = 0;
      serve_waiting(now, out);
      return moved == 0 ? std::nullopt : std::optional(moved);
    }
    move_to(now, job, to, {}, out);
  }
  serve_waiting(now, out);
  return moved;
}

void Engine::move_to(Time now, Job* job, Tube* to, const std::optional<NewPlace>& place,
                     Output& out) {
  Tube* from = job->tube;
  const JobState was = job->state;
  const bool was_held = job->held();
  const bool stays_held = was_held && groups_.must_hold(*job);
  if (was == JobState::reserved) ++job->history().counters.releases;
  if (was == JobState::buried && place) ++job->history().counters.kicks;
  moves_.detach(job);
  if (place) {
    job->priority = place->priority;
    job->set_delay(place->delay.seconds);
  }
  Unit unit(out, from != to);
  const bool keeps_key = moves_.enter_tube(now, *job, to, out);
  const bool renewed = lives_.governs(*job) && lives_.renew(*job);
  const bool delayed =
      place ? place->delay.seconds.count > 0 : was == JobState::delayed && !was_held;
  if (delayed) {
    moves_.attach_delayed(job, place ? now + place->delay : job->deadline);
  } else if (stays_held && !place) {
    moves_.attach_held(job);
  } else if (was == JobState::buried && !place) {
    moves_.attach_buried(job);
  } else {
    moves_.attach_ready(job);
    serve_queue_.push(to);
  }
  const bool is_placed = place || renewed || (was_held && !stays_held) ||
                         was == JobState::reserved || was == JobState::buried;
  if (is_placed) emit_placed(*job, out);
  if (from == to) return;
  out.fact(Moved{.id = job->id, .tube = to->name, .keeps_key = keeps_key});
  unit.end();
  if (!job_waiters_.empty()) [[unlikely]]
    job_waiters_.job_has_moved(*job, out);
  registry_.remove_if_unwanted(now, from);
}

std::optional<bool> Engine::reprioritize(JobId id, Priority priority, Output& out) {
  Job* job = jobs_.find_present(id);
  if (job == nullptr) return std::nullopt;
  if (job->state == JobState::reserved) return false;
  set_priority(*job, priority, out);
  return true;
}

// In any state; durably also for a reserved job.
void Engine::set_priority(Job& job, Priority priority, Output& out) {
  const bool ready = job.state == JobState::ready;
  if (ready) moves_.detach(&job);
  job.priority = priority;
  if (ready) moves_.attach_ready(&job);
  Unit unit(out, held_sink_ != nullptr && job.state == JobState::reserved);
  emit_resting_place(job, out);
  if (held_sink_ != nullptr) emit_if_held(job, *held_sink_);  // the fact before has ended it
}

}  // namespace tubed::engine
