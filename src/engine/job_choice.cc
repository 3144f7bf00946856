#include "engine/job_choice.h"

#include <algorithm>
#include <utility>

#include "base/planted.h"

namespace tubed::engine {

Job* JobChoice::best(const Session& session, Time now) {
  if (parts_.extended) [[unlikely]] {
    if (!giving_) return nullptr;
    ConcurrencyKeys& keys = parts_.concurrency_keys;
    if (keys.has_late()) keys.park_blocked(session);
    if (parts_.expiries.next() <= now) return unexpired(session, now);
  }
  return by_priority(session);
}

// A tube whose next job has expired gives none until advance() has taken out all such jobs.
Job* JobChoice::unexpired(const Session& session, Time now) {
  for (;;) {
    Job* job = by_priority(session);
    if (job == nullptr || !has_expired(*job, now)) return job;
    parts_.expiries.withhold(job->tube);
  }
}

[[gnu::always_inline]] inline Job* JobChoice::by_priority(const Session& session) {
  if (session.weighted()) [[unlikely]]
    return by_weight(session);
  const Tube* best = nullptr;
  const auto consider = [&best](const Tube* tube) {
    if (best == nullptr || tube->ready.top_key() < best->ready.top_key() ||
        (TUBED_PLANTED(last_tube_is_first) &&
         tube->ready.top()->priority == best->ready.top()->priority)) {
      best = tube;
    }
  };
  if (session.watched == nullptr) {
    parts_.entries_walked += session.watches.size();
    for (const WatchEntry& watch : session.watches) {
      if (watch.tube->gives_jobs()) consider(watch.tube);
    }
  } else {
    IndexSet::for_each_common(*session.watched, parts_.tubes.giving(), [&](std::uint32_t index) {
      ++parts_.entries_walked;
      consider(parts_.tubes.at(index));
    });
  }
  return best == nullptr ? nullptr : best->ready.top();
}

// Stride scheduling: each job that a tube gives adds a stride to the pass of the watch, which is
// smaller the greater its weight is, and the tube with the smallest pass is next. A tube that had
// no jobs for a time has no claim to the jobs that it has not given: its pass never falls behind
// the pass of the tube which gave the last job.
Job* JobChoice::by_weight(const Session& session) {
  parts_.entries_walked += session.watches.size();
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
void JobChoice::charge(Session& session, const Tube* tube) {
  constexpr double kStride = 1 << 30;  // large, so the fractions that are lost do not matter
  constexpr double kShortest = 0.01;
  constexpr double kLongest = 1 << 30;
  WatchEntry& watch = *parts_.watch_lists.find(session, tube);
  double seconds = 1;
  if (session.mode == ReserveMode::weighted_fair) {
    seconds = std::clamp(tube->metrics->mean_processing_seconds(), kShortest, kLongest);
  }
  session.pass = std::max(watch.pass, session.pass);
  watch.pass = session.pass + static_cast<std::uint64_t>(kStride * seconds / watch.weight);
}

}  // namespace tubed::engine
