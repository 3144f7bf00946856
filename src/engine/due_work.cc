#include "engine/due_work.h"

#include <algorithm>

#include "engine/job_facts.h"

namespace tubed::engine {

Deadlines DueWork::next() const {
  Deadlines next = parts_.deadlines.next();
  next.closing = parts_.sessions.has_closing();
  if (parts_.extended) [[unlikely]]
    add_rules(next);
  return next;
}

// The deadlines of policies and tags.
void DueWork::add_rules(Deadlines& next) const {
  next.closing = has_unfinished();
  next.delay = std::min(next.delay, parts_.expiries.next());
  next.pause = std::min(next.pause, parts_.deadlines.next_rate());
}

void DueWork::advance(Time now, Output& out) {
  end_reservations(now, out);
  if (parts_.sessions.has_closing()) continue_closing(now, out);
  end_delays(now, out);
  end_pauses(now);
  parts_.reservation_limits.end_rates(now, parts_.limits.work_per_turn);
  if (parts_.extended) [[unlikely]] {
    parts_.lives.end_due(now, parts_.limits.work_per_turn, out);
    parts_.registry.apply_patterns(now, parts_.limits.work_per_turn);
  }
  dispatcher_.serve_waiting(now, out);
  // No session gets TIMED_OUT while a job that it may get is due to become ready.
  if (!makes_ready(now)) end_waits(now, out);
}

bool DueWork::has_unfinished() const {
  return parts_.sessions.has_closing() ||
         (parts_.extended && (parts_.groups.has_complete() || parts_.expiries.has_withheld() ||
                              parts_.registry.has_old_patterns()));
}

// True if work is left that makes jobs ready at or before now.
bool DueWork::makes_ready(Time now) const {
  return has_unfinished() || parts_.deadlines.due_holder(now) != nullptr ||
         parts_.deadlines.due_delay(now) != nullptr || parts_.deadlines.due_pause(now) != nullptr ||
         parts_.deadlines.due_rate(now) != nullptr || parts_.expiries.next() <= now;
}

void DueWork::end_reservations(Time now, Output& out) {
  std::uint32_t budget = parts_.limits.work_per_turn;
  for (; budget > 0; --budget) {
    const Session* holder = parts_.deadlines.due_holder(now);
    if (holder == nullptr) return;
    Job* job = holder->held.top();
    if (!holder->past) [[likely]] {
      ++job->history().counters.timeouts;
      ++timeouts_;
      ++job->tube->timeout_count;
      ++job->tube->metrics->timeout_count;
    }
    give_back(now, job, out);
  }
}

void DueWork::continue_closing(Time now, Output& out) {
  SessionTable& sessions = parts_.sessions;
  std::uint32_t budget = parts_.limits.work_per_turn;
  while (sessions.has_closing()) {
    Session& session = sessions.closing();
    for (; budget > 0 && !session.held.empty(); --budget) give_back(now, session.held.top(), out);
    if (!session.held.empty()) return;
    sessions.free_closing();
  }
}

void DueWork::give_back(Time now, Job* job, Output& out) {
  if (job->truncated()) [[unlikely]]
    return parts_.removal.drop_truncated(now, job, out);
  if (parts_.lives.governs(*job)) [[unlikely]]
    return parts_.lives.come_back(now, job, {}, out);
  parts_.moves.make_ready(job);
  emit_placed(*job, out);
}

void DueWork::end_delays(Time now, Output& out) {
  std::uint32_t budget = parts_.limits.work_per_turn;
  for (; budget > 0; --budget) {
    const Tube* tube = parts_.deadlines.due_delay(now);
    if (tube == nullptr) return;
    Job* job = tube->delayed.top();
    if (job->waits_for_group()) [[unlikely]] {
      parts_.moves.end_delay_of_waiting(job);
      emit_placed(*job, out);
    } else {
      parts_.moves.make_ready(job);
    }
  }
}

void DueWork::end_pauses(Time now) {
  std::uint32_t budget = parts_.limits.work_per_turn;
  for (; budget > 0; --budget) {
    Tube* tube = parts_.deadlines.due_pause(now);
    if (tube == nullptr) return;
    parts_.registry.set_paused(tube, false);
    parts_.tubes.update_giving(tube);
    tube->pause = {};
    parts_.serve_queue.push(tube);
    parts_.registry.remove_if_unwanted(now, tube);
  }
}

void DueWork::end_waits(Time now, Output& out) {
  std::uint32_t budget = parts_.limits.work_per_turn;
  for (; budget > 0; --budget) {
    Session* waiting = parts_.deadlines.due_wait(now);
    if (waiting == nullptr) return;
    Session& session = *waiting;
    const JobId awaited = session.awaited;
    const bool soon = awaited == 0 && !session.held.empty() &&
                      session.held.top_key().deadline - kSafetyMargin <= now;
    dispatcher_.end_wait(session);
    const auto kind = soon ? Notice::Kind::deadline_soon : Notice::Kind::timed_out;
    out.notice({.session = session.id, .kind = kind, .job = awaited, .body = {}});
  }
}

}  // namespace tubed::engine
