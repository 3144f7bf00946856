#include "engine/tube_moves.h"

#include "base/planted.h"
#include "engine/job_facts.h"

namespace tubed::engine {

MoveResult TubeMoves::move(SessionId session, Time now, JobId id, std::string_view tube,
                           const std::optional<NewPlace>& place, Output& out) {
  Job* job = parts_.jobs.find_present(id);
  if (job == nullptr) return MoveResult::not_found;
  const bool reserved = job->state == JobState::reserved;
  if (reserved && !parts_.sessions.at(session).may_act_on(*job)) return MoveResult::not_found;
  Tube* to = parts_.registry.find_or_add(now, tube);
  if (to == nullptr) return MoveResult::too_many_tubes;
  if (to != job->tube && to->is_full()) return MoveResult::tube_full;
  move_to(now, job, to, place, out);
  dispatcher_.serve_waiting(now, out);
  return MoveResult::moved;
}

std::optional<std::uint32_t> TubeMoves::move_slice(Time now, Slices& move, std::string_view tube,
                                                   Output& out) {
  std::uint32_t moved = 0;
  for (; move.left > 0 && moved < parts_.limits.work_per_turn; --move.left, ++moved) {
    // Other sessions may have taken jobs since the last slice.
    Tube* from = parts_.tubes.find(move.tube);
    Job* job = from == nullptr ? nullptr : parts_.concurrency_keys.first_of(*from, move.state);
    // A job that stays would be the first again, and be moved instead of all others.
    const bool stays = from != nullptr && from->name == tube && !TUBED_PLANTED(moves_to_own_tube);
    if (job == nullptr || stays) {
      move.left = 0;
      break;
    }
    Tube* to = parts_.registry.find_or_add(now, tube);
    if (to == nullptr || (to != from && to->is_full())) {
      move.left = 0;
      dispatcher_.serve_waiting(now, out);
      return moved == 0 ? std::nullopt : std::optional(moved);
    }
    move_to(now, job, to, {}, out);
  }
  dispatcher_.serve_waiting(now, out);
  return moved;
}

void TubeMoves::move_to(Time now, Job* job, Tube* to, const std::optional<NewPlace>& place,
                        Output& out) {
  Tube* from = job->tube;
  const JobState was = job->state;
  const bool was_held = job->held();
  const bool stays_held = was_held && parts_.groups.must_hold(*job);
  if (was == JobState::reserved) ++job->history().counters.releases;
  if (was == JobState::buried && place) ++job->history().counters.kicks;
  parts_.moves.detach(job);
  if (place) {
    job->priority = place->priority;
    job->set_delay(place->delay.seconds);
  }
  Unit unit(out, from != to);
  const bool keeps_key = parts_.moves.enter_tube(now, *job, to, out);
  const bool renewed = parts_.lives.governs(*job) && parts_.lives.renew(*job);
  const bool delayed =
      place ? place->delay.seconds.count > 0 : was == JobState::delayed && !was_held;
  if (delayed) {
    parts_.moves.attach_delayed(job, place ? now + place->delay : job->deadline);
  } else if (stays_held && !place) {
    parts_.moves.attach_held(job);
  } else if (was == JobState::buried && !place) {
    parts_.moves.attach_buried(job);
  } else {
    parts_.moves.attach_ready(job);
    parts_.serve_queue.push(to);
  }
  const bool is_placed = place || renewed || (was_held && !stays_held) ||
                         was == JobState::reserved || was == JobState::buried;
  if (is_placed) emit_placed(*job, out);
  if (from == to) return;
  out.fact(Moved{.id = job->id, .tube = to->name, .keeps_key = keeps_key});
  unit.end();
  if (!parts_.job_waiters.empty()) [[unlikely]]
    parts_.job_waiters.job_has_moved(*job, out);
  parts_.registry.remove_if_unwanted(now, from);
}

std::optional<bool> TubeMoves::reprioritize(JobId id, Priority priority, Output& out) {
  Job* job = parts_.jobs.find_present(id);
  if (job == nullptr) return std::nullopt;
  if (job->state == JobState::reserved) return false;
  set_priority(*job, priority, out);
  return true;
}

void TubeMoves::set_priority(Job& job, Priority priority, Output& out) {
  const bool ready = job.state == JobState::ready;
  if (ready) parts_.moves.detach(&job);
  job.priority = priority;
  if (ready) parts_.moves.attach_ready(&job);
  Unit unit(out, parts_.recorded.is_recording() && job.state == JobState::reserved);
  emit_resting_place(job, out);
  parts_.recorded.record_again(job);
}

}  // namespace tubed::engine
