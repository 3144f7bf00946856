// Engine: reserving, waiting, and the work of time.
//
// The first half gives jobs to sessions, in the steps of engine/serve_queue.h. The second half is
// advance(), in the steps of engine/deadline_index.h. Each loop of advance() asks the DeadlineIndex
// for the next due tube or session, does one unit of work, which changes the index, and asks again,
// until nothing is due or work_per_turn is used up.
#include <algorithm>

#include "base/planted.h"
#include "engine/engine.h"
#include "engine/job_facts.h"

namespace tubed::engine {

namespace {

Time end_of(Wait wait, Time now) {
  return wait.limit == Wait::kForever ? kNever : now + wait.limit;
}

}  // namespace

// --- Reserving and waiting

// The only place where a session gets a job.
void Engine::reserve_for(Session& session, Time now, Job* job) {
  moves_.detach(job);
  moves_.attach_reserved(session, now, job);
  if (held_sink_ != nullptr) [[unlikely]]
    emit_held(*job, *held_sink_);
}

[[gnu::always_inline]] inline Notice Engine::give(Session& session, Time now, Job* job) {
  reserve_for(session, now, job);
  return {.session = session.id, .kind = Notice::Kind::reserved, .job = job->id, .body = job->body};
}

std::optional<Notice> Engine::reserve(SessionId id, Time now, Wait wait) {
  Session& session = sessions_.at(id);
  TUBED_ASSERT(!session.waiting);
  mark_worker(session);
  if (Job* job = best_ready(session, now); job != nullptr) {
    if (session.weighted()) [[unlikely]]
      charge_watch(session, job->tube);
    return give(session, now, job);
  }
  // A session does not wait during the last second of a TTR of a job that it holds.
  if (!session.held.empty() && session.held.top_key().deadline - kSafetyMargin <= now) {
    return Notice{.session = id, .kind = Notice::Kind::deadline_soon, .job = 0, .body = {}};
  }
  if (wait.limit <= Duration::zero()) {
    return Notice{.session = id, .kind = Notice::Kind::timed_out, .job = 0, .body = {}};
  }
  session.waiting = true;
  session.arrival = next_arrival_++;
  session.wait_until = end_of(wait, now);
  entries_walked_ += session.watches.size();
  for (WatchEntry& watch : session.watches) {
    watch.tube->waiting.push_back(&watch);
    ++watch.tube->metrics->waiting_count;
  }
  ++counts_.waiting;
  deadlines_.update(session);
  return {};
}

std::optional<JobBody> Engine::reserve_ready(SessionId id, Time now) {
  Session& session = sessions_.at(id);
  mark_worker(session);
  Job* job = best_ready(session, now);
  if (job == nullptr) return std::nullopt;
  if (session.weighted()) charge_watch(session, job->tube);
  reserve_for(session, now, job);
  return JobBody{.id = job->id, .body = job->body};
}

void Engine::cancel_wait(SessionId id) {
  Session& session = sessions_.at(id);
  TUBED_ASSERT(session.waiting);
  end_wait(session);
}

std::optional<JobBody> Engine::reserve_job(SessionId id, Time now, JobId job_id) {
  Session& session = sessions_.at(id);
  Job* job = jobs_.find_present(job_id);
  if (job == nullptr || job->state == JobState::reserved) return std::nullopt;
  // A buried job has no time to live.
  const bool expires = job->state != JobState::buried && has_expired(*job, now);
  const bool tagged = job->tags() != nullptr && (expires || is_blocked(*job));
  if (!giving_ || job->tube->withheld != 0 || job->held() || tagged) [[unlikely]]
    return std::nullopt;
  mark_worker(session);  // Compat: only a session that got its job
  reserve_for(session, now, job);
  return JobBody{.id = job->id, .body = job->body};
}

void Engine::mark_worker(Session& session) {
  if (!std::exchange(session.worker, true)) ++counts_.workers;
}

// Stride scheduling: each job that a tube gives moves the pass of the watch on by a stride that is
// smaller the greater its weight is, and the tube with the smallest pass is next. A tube that had
// no jobs for a time has no claim to the jobs that it has not given: its pass is at least that of
// the tube which gave the last job.
Job* Engine::next_by_weight(const Session& session) {
  entries_walked_ += session.watches.size();
  const WatchEntry* best = nullptr;
  const auto key = [&session](const WatchEntry& watch) {
    return std::pair(std::max(watch.pass, session.pass), watch.tube->number);
  };
  for (const WatchEntry& watch : session.watches) {
    if (!watch.tube->gives_jobs()) continue;
    if (best == nullptr || key(watch) < key(*best)) best = &watch;
  }
  return best == nullptr ? nullptr : best->tube->ready.top();
}

// In the fair mode a stride is longer the longer the jobs of the tube are worked on.
void Engine::charge_watch(Session& session, const Tube* tube) {
  constexpr double kStride = 1 << 30;  // large, so that the fractions that are lost do not matter
  constexpr double kShortest = 0.01;
  constexpr double kLongest = 1 << 30;
  WatchEntry& watch = *find_watch(session, tube);
  double seconds = 1;
  if (session.mode == ReserveMode::weighted_fair) {
    seconds = std::clamp(tube->metrics->mean_processing_seconds(), kShortest, kLongest);
  }
  session.pass = std::max(watch.pass, session.pass);
  watch.pass = session.pass + static_cast<std::uint64_t>(kStride * seconds / watch.weight);
}

Job* Engine::best_ready(const Session& session, Time now) {
  if (extended_) [[unlikely]] {
    if (!giving_) return nullptr;
    if (concurrency_keys_.has_late()) concurrency_keys_.park_blocked(session);
    if (expiry_is_due(now)) return best_that_lives(session, now);
  }
  return best_by_priority(session);
}

// A tube whose next job has expired gives none until advance() has taken out all such jobs.
Job* Engine::best_that_lives(const Session& session, Time now) {
  for (;;) {
    Job* job = best_by_priority(session);
    if (job == nullptr || !has_expired(*job, now)) return job;
    expiries_.withhold(job->tube);
  }
}

[[gnu::always_inline]] inline Job* Engine::best_by_priority(const Session& session) {
  if (session.weighted()) [[unlikely]]
    return next_by_weight(session);
  const Tube* best = nullptr;
  const auto consider = [&best](const Tube* tube) {
    if (best == nullptr || tube->ready.top_key() < best->ready.top_key() ||
        (TUBED_PLANTED(last_tube_is_first) &&
         tube->ready.top()->priority == best->ready.top()->priority)) {
      best = tube;
    }
  };
  if (session.watched == nullptr) {
    entries_walked_ += session.watches.size();
    for (const WatchEntry& watch : session.watches) {
      if (watch.tube->gives_jobs()) consider(watch.tube);
    }
  } else {
    IndexSet::for_each_common(*session.watched, tubes_.giving(), [&](std::uint32_t index) {
      ++entries_walked_;
      consider(tubes_.at(index));
    });
  }
  return best == nullptr ? nullptr : best->ready.top();
}

void Engine::end_wait(Session& session) {
  if (session.awaited != 0) [[unlikely]]
    return job_waiters_.remove(session);
  entries_walked_ += session.watches.size();
  for (WatchEntry& watch : session.watches) {
    watch.tube->waiting.erase(&watch);
    --watch.tube->metrics->waiting_count;
  }
  session.waiting = false;
  --counts_.waiting;
  deadlines_.update(session);
}

void Engine::set_giving(bool giving, Time now, Output& out) {
  extended_ = true;
  giving_ = giving;
  if (!giving) return;
  // Nothing was queued meanwhile.
  IndexSet::for_each_common(tubes_.giving(), tubes_.giving(),
                            [this](std::uint32_t index) { serve_queue_.push(tubes_.at(index)); });
  serve_waiting(now, out);
}

// Makes up to work_per_turn jobs of complete groups ready.
void Engine::release_held(Output& out) {
  std::uint32_t budget = limits_.work_per_turn;
  for (; budget > 0 && groups_.has_complete(); --budget) {
    Job* job = groups_.next_held()->job;
    if (job->flushed()) {
      groups_.unhold(*job);
      continue;
    }
    moves_.make_ready(job);
    emit_placed(*job, out);
  }
}

void Engine::serve_queued(Time now, Output& out) {
  if (extended_) [[unlikely]] {
    if (groups_.has_complete()) release_held(out);
    if (!giving_) {
      while (!serve_queue_.empty()) serve_queue_.pop();
      return;
    }
  }
  while (!serve_queue_.empty()) {
    const ServeQueue::Entry next = serve_queue_.pop();
    if (!next.tube->can_serve()) continue;
    Session& session = *next.tube->waiting.first()->session;
    // If the session that was first at the push was served through another tube, this tube goes
    // back into the queue with its present first session.
    if (session.arrival == next.arrival) {
      Job* job = best_ready(session, now);
      if (job == nullptr) [[unlikely]]
        continue;  // its tubes are withheld now
      if (session.weighted()) [[unlikely]]
        charge_watch(session, job->tube);
      end_wait(session);
      out.notice(give(session, now, job));
    }
    serve_queue_.push(next.tube);
  }
}

std::optional<Notice> Engine::wait_for_job(SessionId id, Time now, JobId job_id, Wait wait) {
  Session& session = sessions_.at(id);
  TUBED_ASSERT(!session.waiting);
  const auto answer = [&](Notice::Kind kind) {
    return Notice{.session = id, .kind = kind, .job = job_id, .body = {}};
  };
  const Job* job = jobs_.find_present(job_id);
  if (job == nullptr) return answer(Notice::Kind::not_found);
  if (job->state == JobState::buried) return answer(Notice::Kind::buried);
  if (wait.limit <= Duration::zero()) return answer(Notice::Kind::timed_out);
  extended_ = true;
  session.arrival = next_arrival_++;
  job_waiters_.add(session, job_id, end_of(wait, now));
  return {};
}

// Called after a client has deleted or buried a job: its end may concern sessions that wait for it,
// and make room for other jobs.
void Engine::job_has_ended(Time now, JobId job, Notice::Kind kind, Output& out) {
  job_waiters_.job_has_ended(job, kind, out);
  serve_waiting(now, out);
}

// --- Time

Deadlines Engine::next_deadlines() const {
  Deadlines next = deadlines_.next();
  next.closing = sessions_.has_closing();
  if (extended_) [[unlikely]]
    add_rules(next);
  return next;
}

// The deadlines of policies and tags.
void Engine::add_rules(Deadlines& next) const {
  next.closing = has_unfinished();
  next.delay = std::min(next.delay, expiries_.next());
  next.pause = std::min(next.pause, deadlines_.next_rate());
}

void Engine::advance(Time now, Output& out) {
  end_reservations(now, out);
  if (sessions_.has_closing()) continue_closing(now, out);
  end_delays(now, out);
  end_pauses(now);
  reservation_limits_.end_rates(now, limits_.work_per_turn);
  if (extended_) [[unlikely]] {
    lives_.end_due(now, limits_.work_per_turn, out);
    registry_.apply_patterns(now, limits_.work_per_turn);
  }
  serve_waiting(now, out);
  // No session gets TIMED_OUT while a job that it may get is due to become ready.
  if (!makes_ready(now)) end_waits(now, out);
}

bool Engine::has_unfinished() const {
  return sessions_.has_closing() ||
         (extended_ &&
          (groups_.has_complete() || expiries_.has_withheld() || registry_.has_old_patterns()));
}

// True if work is left that makes jobs ready at or before now.
bool Engine::makes_ready(Time now) const {
  return has_unfinished() || deadlines_.due_holder(now) != nullptr ||
         deadlines_.due_delay(now) != nullptr || deadlines_.due_pause(now) != nullptr ||
         deadlines_.due_rate(now) != nullptr || expiry_is_due(now);
}

void Engine::end_reservations(Time now, Output& out) {
  std::uint32_t budget = limits_.work_per_turn;
  for (; budget > 0; --budget) {
    const Session* holder = deadlines_.due_holder(now);
    if (holder == nullptr) return;
    Job* job = holder->held.top();
    if (!holder->past) [[likely]] {
      ++job->history().counters.timeouts;
      ++counts_.timeouts;
      ++job->tube->timeout_count;
      ++job->tube->metrics->timeout_count;
    }
    give_back(now, job, out);
  }
}

void Engine::end_delays(Time now, Output& out) {
  std::uint32_t budget = limits_.work_per_turn;
  for (; budget > 0; --budget) {
    const Tube* tube = deadlines_.due_delay(now);
    if (tube == nullptr) return;
    Job* job = tube->delayed.top();
    if (job->waits_for_group()) [[unlikely]] {
      moves_.end_delay_of_waiting(job);
      emit_placed(*job, out);
    } else {
      moves_.make_ready(job);
    }
  }
}

void Engine::end_pauses(Time now) {
  std::uint32_t budget = limits_.work_per_turn;
  for (; budget > 0; --budget) {
    Tube* tube = deadlines_.due_pause(now);
    if (tube == nullptr) return;
    registry_.set_paused(tube, false);
    tubes_.update_giving(tube);
    tube->pause = {};
    serve_queue_.push(tube);
    registry_.remove_if_unwanted(now, tube);
  }
}

void Engine::end_waits(Time now, Output& out) {
  std::uint32_t budget = limits_.work_per_turn;
  for (; budget > 0; --budget) {
    Session* waiting = deadlines_.due_wait(now);
    if (waiting == nullptr) return;
    Session& session = *waiting;
    const JobId awaited = session.awaited;
    const bool soon = awaited == 0 && !session.held.empty() &&
                      session.held.top_key().deadline - kSafetyMargin <= now;
    end_wait(session);
    const auto kind = soon ? Notice::Kind::deadline_soon : Notice::Kind::timed_out;
    out.notice({.session = session.id, .kind = kind, .job = awaited, .body = {}});
  }
}

}  // namespace tubed::engine
