#include "engine/dispatcher.h"

#include "engine/job_facts.h"

namespace tubed::engine {

void Dispatcher::reserve(Session& session, Time now, Job* job) {
  parts_.moves.detach(job);
  parts_.moves.attach_reserved(session, now, job);
  parts_.recorded.record(*job);
}

void Dispatcher::begin_wait(Session& session, Time until) {
  session.waiting = true;
  session.arrival = next_arrival_++;
  session.wait_until = until;
  parts_.entries_walked += session.watches.size();
  for (WatchEntry& watch : session.watches) {
    watch.tube->waiting.push_back(&watch);
    ++watch.tube->metrics->waiting_count;
  }
  ++waiting_;
  parts_.deadlines.update(session);
}

void Dispatcher::begin_wait_for(Session& session, JobId job, Time until) {
  parts_.extended = true;
  session.arrival = next_arrival_++;
  parts_.job_waiters.add(session, job, until);
}

void Dispatcher::end_wait(Session& session) {
  if (session.awaited != 0) [[unlikely]]
    return parts_.job_waiters.remove(session);
  parts_.entries_walked += session.watches.size();
  for (WatchEntry& watch : session.watches) {
    watch.tube->waiting.erase(&watch);
    --watch.tube->metrics->waiting_count;
  }
  session.waiting = false;
  --waiting_;
  parts_.deadlines.update(session);
}

void Dispatcher::job_has_ended(Time now, JobId job, Notice::Kind kind, Output& out) {
  parts_.job_waiters.job_has_ended(job, kind, out);
  serve_waiting(now, out);
}

void Dispatcher::jobs_were_flushed(Time now, Output& out) {
  parts_.job_waiters.jobs_were_flushed(parts_.jobs, out);
  serve_waiting(now, out);
}

// Makes up to work_per_turn jobs of complete groups ready.
void Dispatcher::release_held(Output& out) {
  Groups& groups = parts_.groups;
  std::uint32_t budget = parts_.limits.work_per_turn;
  for (; budget > 0 && groups.has_complete(); --budget) {
    Job* job = groups.next_held()->job;
    if (job->flushed()) {
      groups.unhold(*job);
      continue;
    }
    parts_.moves.make_ready(job);
    emit_placed(*job, out);
  }
}

void Dispatcher::serve_queued(Time now, Output& out) {
  ServeQueue& queue = parts_.serve_queue;
  if (parts_.extended) [[unlikely]] {
    if (parts_.groups.has_complete()) release_held(out);
    if (!choice_.is_giving()) {
      while (!queue.empty()) queue.pop();
      return;
    }
  }
  while (!queue.empty()) {
    const ServeQueue::Entry next = queue.pop();
    if (!next.tube->can_serve()) continue;
    Session& session = *next.tube->waiting.first()->session;
    // If the session that was first at the push was served through another tube, this tube goes
    // back into the queue with its present first session.
    if (session.arrival == next.arrival) {
      Job* job = choice_.best(session, now);
      if (job == nullptr) [[unlikely]]
        continue;  // its tubes are withheld now
      if (session.weighted()) [[unlikely]]
        choice_.charge(session, job->tube);
      end_wait(session);
      out.notice(give(session, now, job));
    }
    queue.push(next.tube);
  }
}

}  // namespace tubed::engine
