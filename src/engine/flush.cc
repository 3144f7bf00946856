// Engine: flushing tubes. The steps of a flush are numbered in engine/flushed_jobs.h.
#include <algorithm>
#include <utility>

#include "engine/engine.h"

namespace tubed::engine {

namespace {

// One tick removes this fraction of work_per_turn: nothing waits for the removal, and replies that
// wait for a commit must not wait for it either.
constexpr std::uint32_t kRemovalShare = 8;

}  // namespace

std::uint64_t Engine::flush(Time now, std::string_view name, Output& out) {
  Tube* tube = tubes_.find(name);
  if (tube == nullptr || tube->job_count() == 0) {
    if (unique_keys_.flush(name)) out.fact(Flushed{.tube = name});
    return 0;
  }
  limit_flushes(*tube, out);
  std::uint64_t count = tube->job_count();
  for (JobHistory* held = tube->reserved.first(); held != nullptr; held = JobList::next(held)) {
    if (held->job->truncated()) --count;
  }
  end_flush(now, moves_.take_all_jobs(tube), count, out);
  job_waiters_.jobs_were_flushed(jobs_, out);
  serve_waiting(now, out);
  return count;
}

std::optional<std::uint64_t> Engine::truncate(Time now, std::string_view name, Output& out) {
  Tube* tube = tubes_.find(name);
  if (tube == nullptr) return std::nullopt;
  if (tube->job_count() == 0) return flush(now, name, out);
  for (JobHistory* held = tube->reserved.first(); held != nullptr; held = JobList::next(held)) {
    Job& job = *held->job;
    job.resting_state = JobState::reserved;
    if (job.groups() == nullptr) continue;
    groups_.remove(job);  // a restart would not know it as a member either
    tag_records_.drop_empty(job);
  }
  limit_flushes(*tube, out);
  FlushedBatch batch = moves_.take_jobs_at_rest(tube);
  const std::uint64_t count = batch.size();
  end_flush(now, std::move(batch), count, out);
  job_waiters_.jobs_were_flushed(jobs_, out);
  serve_waiting(now, out);
  return count;
}

// Epochs are numbers of 16 bits: a tube must not come back to one that flushed jobs still have.
void Engine::limit_flushes(const Tube& tube, FactSink& out) {
  if (tube.unremoved_flushes < FlushedJobs::kMaxBatchesOfTube) return;
  while (tube.unremoved_flushes > 0) remove_flushed_job(out);
}

// Steps 2 and 3.
void Engine::end_flush(Time now, FlushedBatch batch, std::uint64_t count, FactSink& out) {
  Tube* tube = batch.tube;
  JobRemoval::count_deleted(*tube, count);
  unique_keys_.flush(tube->name);
  add_flushed(std::move(batch));
  out.fact(Flushed{.tube = tube->name});
  registry_.remove_if_unwanted(now, tube);
}

void Engine::add_flushed(FlushedBatch batch) {
  if (batch.size() == 0) return;
  Tube* tube = batch.tube;
  ++tube->epoch;
  for (JobHistory* held = tube->reserved.first(); held != nullptr; held = JobList::next(held)) {
    held->job->epoch = tube->epoch;  // truncated, and still in the tube
  }
  flushed_.add(std::move(batch));
}

// Step 4.
void Engine::remove_pending(Time now, FactSink& log, Output& out) {
  std::uint32_t left = std::max(limits_.work_per_turn / kRemovalShare, 1U);
  for (; left > 0 && has_removals(now); --left) {
    if (!flushed_.empty()) {
      remove_flushed_job(log);
    } else {
      unique_keys_.end_next(log);
    }
  }
  serve_waiting(now, out);
}

void Engine::remove_flushed_job(FactSink& out) {
  const JobId id = flushed_.next()->id;
  forget_flushed(flushed_.next());
  out.fact(Removed{.id = id});
}

void Engine::forget_flushed(Job* job) {
  const JobId id = job->id;
  const bool parked = job->concurrency() != nullptr && job->concurrency()->parked;
  if (job->tags() != nullptr) tags_.free(*job);
  flushed_.erase(job, parked);  // and its tube, if that was removed and this is its last job
  return_memory(job->body.size());
  jobs_.remove(id);
}

Slices Engine::begin_flush(std::string_view name, JobState state, std::uint64_t bound) const {
  return slices(name, state, bound);
}

std::uint32_t Engine::flush_slice(Time now, Slices& flush, FactSink& log, Output& out) {
  Tube* tube = tubes_.find(flush.tube);
  std::uint32_t removed = 0;
  for (std::uint32_t work = 0; flush.left > 0 && work < limits_.work_per_turn; ++work) {
    // Other sessions may have taken jobs since the last slice.
    Job* job = tube == nullptr ? nullptr : first_of(tube, flush.state);
    if (job == nullptr) {
      flush.left = 0;
      break;
    }
    const JobId id = job->id;
    const bool exists = !job->truncated();
    removal_.erase(job, exists ? static_cast<FactSink&>(out) : log);
    if (!exists) continue;
    JobRemoval::count_deleted(*tube, 1);
    job_waiters_.job_has_ended(id, Notice::Kind::deleted, out);
    --flush.left;
    ++removed;
  }
  serve_waiting(now, out);
  if (tube != nullptr) registry_.remove_if_unwanted(now, tube);
  return removed;
}

}  // namespace tubed::engine
