// Engine: who gets which job, and what time does.
#include <algorithm>

#include "engine/engine.h"

namespace tubed::engine {

// --- Reserving and waiting

std::optional<Notice> Engine::reserve(SessionId id, Time now, Wait wait) {
  Session& session = session_of(id);
  TUBED_ASSERT(!session.waiting);
  mark_worker(session);
  if (Job* job = best_ready(session); job != nullptr) {
    detach(job);
    return give(session, now, job);
  }
  // A holder is not made to wait through the last second of what it holds.
  if (!session.held.empty() && session.held.top_key().deadline - kSafetyMargin <= now) {
    return Notice{.session = id, .kind = Notice::Kind::deadline_soon, .job = 0, .body = {}};
  }
  if (wait.limit <= Duration::zero()) {
    return Notice{.session = id, .kind = Notice::Kind::timed_out, .job = 0, .body = {}};
  }
  session.waiting = true;
  session.arrival = next_arrival_++;
  session.wait_until = wait.limit == Wait::kForever ? kNever : now + wait.limit;
  watches_walked_ += session.watches.size();
  for (Watch& watch : session.watches) {
    watch.tube->waiting.push_back(&watch);
    ++watch.tube->metrics->waiting_count;
  }
  ++counts_.waiting;
  watch_deadlines(session);
  return {};
}

void Engine::cancel_wait(SessionId id) {
  Session& session = session_of(id);
  TUBED_ASSERT(session.waiting);
  end_wait(session);
}

std::optional<JobBody> Engine::reserve_job(SessionId id, Time now, JobId job_id) {
  Session& session = session_of(id);
  Job* job = jobs_.find(job_id);
  if (job == nullptr || job->state == JobState::reserved) return std::nullopt;
  mark_worker(session);  // Compat: only one that got its job
  detach(job);
  attach_reserved(session, now, job);
  return JobBody{.id = job->id, .body = job->body};
}

void Engine::mark_worker(Session& session) {
  if (!std::exchange(session.worker, true)) ++counts_.workers;
}

Job* Engine::best_ready(const Session& session) {
  const Tube* best = nullptr;
  const auto consider = [&best](const Tube* tube) {
    if (best == nullptr || tube->ready.top_key() < best->ready.top_key()) best = tube;
  };
  if (session.watched == nullptr) {
    watches_walked_ += session.watches.size();
    for (const Watch& watch : session.watches) {
      if (watch.tube->gives_jobs()) consider(watch.tube);
    }
  } else {
    IndexSet::for_each_common(*session.watched, giving_tubes_, [&](std::uint32_t index) {
      ++watches_walked_;
      consider(tubes_.at(index));
    });
  }
  return best == nullptr ? nullptr : best->ready.top();
}

void Engine::end_wait(Session& session) {
  watches_walked_ += session.watches.size();
  for (Watch& watch : session.watches) {
    watch.tube->waiting.erase(&watch);
    --watch.tube->metrics->waiting_count;
  }
  session.waiting = false;
  --counts_.waiting;
  watch_deadlines(session);
}

Notice Engine::give(Session& session, Time now, Job* job) {
  attach_reserved(session, now, job);
  return {.session = session.id, .kind = Notice::Kind::reserved, .job = job->id, .body = job->body};
}

namespace {

// For a heap whose front is the session that has waited longest; arrivals are unique.
constexpr auto kWaitedShorter = [](const auto& a, const auto& b) {
  return a.arrival != b.arrival ? a.arrival > b.arrival : a.tube->number > b.tube->number;
};

}  // namespace

void Engine::may_serve(Tube* tube) {
  if (tube->serving || !tube->can_serve()) return;
  tube->serving = true;
  to_serve_.push_back({tube->waiting.first()->session->arrival, tube});
  std::push_heap(to_serve_.begin(), to_serve_.end(), kWaitedShorter);
}

void Engine::serve_waiting(Time now, Output& out) {
  while (!to_serve_.empty()) {
    std::pop_heap(to_serve_.begin(), to_serve_.end(), kWaitedShorter);
    const ToServe next = to_serve_.back();
    to_serve_.pop_back();
    next.tube->serving = false;
    if (!next.tube->can_serve()) continue;
    Session& session = *next.tube->waiting.first()->session;
    // Whoever stood at the front may have been served through another tube: then this tube's turn
    // comes later.
    if (session.arrival == next.arrival) {
      Job* job = best_ready(session);
      end_wait(session);
      detach(job);
      out.notice(give(session, now, job));
    }
    may_serve(next.tube);
  }
}

// --- Time

Deadlines Engine::next_deadlines() const {
  Deadlines next;
  if (!delayed_tubes_.empty()) next.delay = delayed_tubes_.top_key().deadline;
  if (!paused_tubes_.empty()) next.pause = paused_tubes_.top_key().deadline;
  if (!holders_.empty()) next.ttr = holders_.top_key().deadline;
  if (!waits_.empty()) next.ttr = std::min(next.ttr, waits_.top_key().deadline);
  next.closing = !closing_.empty();
  return next;
}

void Engine::advance(Time now, Output& out) {
  end_reservations(now, out);
  if (!closing_.empty()) continue_closing(out);
  end_delays(now);
  end_pauses(now, out);
  serve_waiting(now, out);
  // While jobs are still about to become ready, nobody is told that there is none.
  if (!makes_ready(now)) end_waits(now, out);
}

// More is left to do that makes jobs ready at or before now.
bool Engine::makes_ready(Time now) const {
  return !closing_.empty() || (!holders_.empty() && holders_.top_key().deadline <= now) ||
         (!delayed_tubes_.empty() && delayed_tubes_.top_key().deadline <= now) ||
         (!paused_tubes_.empty() && paused_tubes_.top_key().deadline <= now);
}

void Engine::end_reservations(Time now, Output& out) {
  std::uint32_t budget = limits_.work_per_turn;
  while (!holders_.empty() && holders_.top_key().deadline <= now && budget-- > 0) {
    Job* job = holders_.top()->held.top();
    ++job->history().counters.timeouts;
    ++counts_.timeouts;
    ++job->tube->metrics->timeout_count;
    give_back(job, out);
  }
}

void Engine::end_delays(Time now) {
  std::uint32_t budget = limits_.work_per_turn;
  while (!delayed_tubes_.empty() && delayed_tubes_.top_key().deadline <= now && budget-- > 0) {
    make_ready(delayed_tubes_.top()->delayed.top());
  }
}

void Engine::end_pauses(Time now, Output& out) {
  std::uint32_t budget = limits_.work_per_turn;
  while (!paused_tubes_.empty() && paused_tubes_.top_key().deadline <= now && budget-- > 0) {
    Tube* tube = paused_tubes_.top();
    set_paused(tube, false);
    note_giving(tube);
    tube->pause = {};
    tube->restored = false;
    may_serve(tube);
    remove_if_unwanted(now, tube, out);
  }
}

void Engine::end_waits(Time now, Output& out) {
  std::uint32_t budget = limits_.work_per_turn;
  while (!waits_.empty() && waits_.top_key().deadline <= now && budget-- > 0) {
    Session& session = *waits_.top();
    const bool soon =
        !session.held.empty() && session.held.top_key().deadline - kSafetyMargin <= now;
    end_wait(session);
    const auto kind = soon ? Notice::Kind::deadline_soon : Notice::Kind::timed_out;
    out.notice({.session = session.id, .kind = kind, .job = 0, .body = {}});
  }
}

}  // namespace tubed::engine
