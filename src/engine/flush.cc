// Engine: flushing tubes. The steps of a flush are numbered in tables/flushed_jobs.h.
#include <algorithm>

#include "engine/engine.h"

namespace tubed::engine {

namespace {

// One tick removes this fraction of work_per_turn: nothing waits for the removal, and replies that
// wait for a commit must not wait for it either.
constexpr std::uint32_t kRemovalShare = 8;

bool has_jobs(const Tube* tube) {
  return tube != nullptr && tube->job_count() > 0;
}

}  // namespace

std::uint64_t Engine::flush(Time now, std::string_view tube, Output& out) {
  const bool had_jobs = has_jobs(parts_.tubes.find(tube));
  const std::uint64_t count = flushes_.flush(now, tube, out);
  if (had_jobs) dispatcher_.jobs_were_flushed(now, out);
  return count;
}

std::optional<std::uint64_t> Engine::truncate(Time now, std::string_view tube, Output& out) {
  const bool had_jobs = has_jobs(parts_.tubes.find(tube));
  const auto count = flushes_.truncate(now, tube, out);
  if (had_jobs) dispatcher_.jobs_were_flushed(now, out);
  return count;
}

// Step 4.
void Engine::remove_pending(Time now, FactSink& log, Output& out) {
  std::uint32_t left = std::max(parts_.limits.work_per_turn / kRemovalShare, 1U);
  for (; left > 0 && has_removals(now); --left) flushes_.remove_next(log);
  dispatcher_.serve_waiting(now, out);
}

std::uint32_t Engine::flush_slice(Time now, Slices& flush, FactSink& log, Output& out) {
  Tube* tube = parts_.tubes.find(flush.tube);
  std::uint32_t removed = 0;
  for (std::uint32_t work = 0; flush.left > 0 && work < parts_.limits.work_per_turn; ++work) {
    // Other sessions may have taken jobs since the last slice.
    Job* job = tube == nullptr ? nullptr : parts_.concurrency_keys.first_of(*tube, flush.state);
    if (job == nullptr) {
      flush.left = 0;
      break;
    }
    const JobId id = job->id;
    const bool exists = !job->truncated();
    parts_.removal.erase(job, exists ? static_cast<FactSink&>(out) : log);
    if (!exists) continue;
    JobRemoval::count_deleted(*tube, 1);
    parts_.job_waiters.job_has_ended(id, Notice::Kind::deleted, out);
    --flush.left;
    ++removed;
  }
  dispatcher_.serve_waiting(now, out);
  if (tube != nullptr) parts_.registry.remove_if_unwanted(now, tube);
  return removed;
}

}  // namespace tubed::engine
