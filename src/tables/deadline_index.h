// DeadlineIndex: which tubes and sessions have something due at which time.
//
// A job's own deadline is in a heap of its tube (delayed) or of its holder (reserved); see
// tables/job.h. This index has one entry for each tube and session with a deadline, by the first of
// its deadlines, so it changes only when that first deadline does:
//
// - delays: tubes with delayed jobs, by the end of the first delay
// - pauses: paused tubes, by the end of the pause
// - rates: tubes that have given all jobs that their rate allows, by the time of the next
// - TTRs: open sessions that hold jobs, by the first TTR to pass, and the session of the past
//   (engine/recorded_reservations.h)
// - waits: waiting sessions whose wait ends by time, at its limit or, in a reserve, when a job that
//   the session holds comes into the last second of its TTR
//
// The server calls Engine::advance() when next() is due. advance() does the following, each step
// for at most work_per_turn jobs or sessions. Work beyond that stays due and is done by the next
// call:
//
// 1. Reservations whose TTR has passed end: the job becomes ready and counts a timeout. The session
//    of the past gives back its jobs, which counts none.
// 2. Closed sessions give back jobs that they still hold.
// 3. Delays end: the job becomes ready. No fact says so, because the time is part of the fact that
//    delayed the job.
// 4. Pauses end, and rates allow another job: the tube gives jobs again.
// 5. Jobs expire (tables/expiries.h, which has a heap of them).
// 6. Waiting sessions get jobs (tables/serve_queue.h).
// 7. Waits end with TIMED_OUT or DEADLINE_SOON, but only if steps 1 to 5 have left nothing due: a
//    session whose job is about to become ready is not sent TIMED_OUT.
//
// The index refers to tubes and sessions and owns none. Each update is O(log n), each question
// O(1). Ties are broken by the tubes' creation (pauses), the sessions' arrival (waits), or the
// jobs' ids.
#pragma once

#include <algorithm>

#include "tables/job.h"

namespace tubed::engine {

// A session that holds a job in the last second of its TTR does not wait for another job.
inline constexpr Duration kSafetyMargin = std::chrono::seconds(1);

// The next moments at which advance() has something to do; kNever if it has nothing of that kind.
struct Deadlines {
  Time delay = kNever;  // a delayed job becomes ready, or a job expires
  Time ttr = kNever;    // a reservation or a wait ends
  Time pause = kNever;  // a tube gives jobs again
  // Closed sessions have jobs to give back, complete groups hold jobs, or tubes are withheld until
  // all that is due has expired: this is due at once.
  bool closing = false;

  // True if advance() has something to do now.
  bool due(Time now) const { return closing || delay <= now || ttr <= now || pause <= now; }
};

class DeadlineIndex {
 public:
  // Called after the session's held jobs, their deadlines or its wait changed.
  void update(Session& session) {
    DeadlineKey first = session.held.empty() ? DeadlineKey{} : session.held.top_key();
    if (session.past) [[unlikely]]
      first.deadline = std::min(first.deadline, session.hold_until);
    const bool ends_by_time = session.open || session.past;  // not of a session that was closed
    holders_.set(ends_by_time && !session.held.empty(), first, &session);
    Time wait_end = kNever;
    if (session.waiting) {
      wait_end = session.wait_until;
      const bool in_reserve = session.awaited == 0;
      if (in_reserve && !session.held.empty())
        wait_end = std::min(wait_end, first.deadline - kSafetyMargin);
    }
    waits_.set(wait_end != kNever, {wait_end, session.arrival}, &session);
  }

  // Called after the tube's delayed jobs changed.
  void update_delay(Tube* tube) {
    const DeadlineKey first = tube->delayed.empty() ? DeadlineKey{} : tube->delayed.top_key();
    delays_.set(!tube->delayed.empty(), first, tube);
  }

  // Called after `pause_until` changed. From now on the tube is paused, or not.
  void set_paused(Tube* tube, bool paused) {
    pauses_.set(paused, {tube->pause_until, tube->number}, tube);
  }

  // The same for `rate_until`: until then its rate allows no job.
  void set_rate_used(TubeRules* rules, bool used) {
    rates_.set(used, {rules->rate_until, rules->tube->number}, rules);
  }

  // `closing`, expiry and rates are not filled in.
  Deadlines next() const {
    Deadlines next;
    if (!delays_.empty()) next.delay = delays_.top_key().deadline;
    if (!pauses_.empty()) next.pause = pauses_.top_key().deadline;
    if (!holders_.empty()) next.ttr = holders_.top_key().deadline;
    if (!waits_.empty()) next.ttr = std::min(next.ttr, waits_.top_key().deadline);
    return next;
  }

  // When the first tube that has used up its rate may give another job, or kNever.
  Time next_rate() const { return rates_.empty() ? kNever : rates_.top_key().deadline; }

  // The tube or session with the earliest deadline of one kind that is at or before `now`, or null.
  Tube* due_delay(Time now) const { return due(delays_, now); }
  Tube* due_pause(Time now) const { return due(pauses_, now); }
  TubeRules* due_rate(Time now) const { return due(rates_, now); }
  Session* due_holder(Time now) const { return due(holders_, now); }
  Session* due_wait(Time now) const { return due(waits_, now); }

  // For tests.
  void check_invariants() const {
    delays_.check_invariants();
    pauses_.check_invariants();
    rates_.check_invariants();
    holders_.check_invariants();
    waits_.check_invariants();
  }

 private:
  template <class Heap>
  static auto due(const Heap& heap, Time now) -> decltype(heap.top()) {
    return !heap.empty() && heap.top_key().deadline <= now ? heap.top() : nullptr;
  }

  IndexedHeap<Tube, DeadlineKey, &Tube::delay_index> delays_;
  IndexedHeap<Tube, DeadlineKey, &Tube::pause_index> pauses_;
  IndexedHeap<TubeRules, DeadlineKey, &TubeRules::rate_index> rates_;
  IndexedHeap<Session, DeadlineKey, &Session::ttr_index> holders_;
  IndexedHeap<Session, DeadlineKey, &Session::wait_index> waits_;
};

}  // namespace tubed::engine
