#include "engine/flushes.h"

#include <utility>

namespace tubed::engine {

std::uint64_t Flushes::flush(Time now, std::string_view name, FactSink& out) {
  Tube* tube = parts_.tubes.find(name);
  if (tube == nullptr || tube->job_count() == 0) {
    if (parts_.unique_keys.flush(name)) out.fact(Flushed{.tube = name});
    return 0;
  }
  limit(*tube, out);
  std::uint64_t count = tube->job_count();
  for (JobHistory* held = tube->reserved.first(); held != nullptr; held = JobList::next(held)) {
    if (held->job->truncated()) --count;
  }
  finish(now, parts_.moves.take_all_jobs(tube), count, out);
  return count;
}

std::optional<std::uint64_t> Flushes::truncate(Time now, std::string_view name, FactSink& out) {
  Tube* tube = parts_.tubes.find(name);
  if (tube == nullptr) return std::nullopt;
  if (tube->job_count() == 0) return flush(now, name, out);
  for (JobHistory* held = tube->reserved.first(); held != nullptr; held = JobList::next(held)) {
    Job& job = *held->job;
    job.resting_state = JobState::reserved;
    if (job.groups() == nullptr) continue;
    parts_.groups.remove(job);  // a restart would not know it as a member either
    parts_.tag_records.drop_empty(job);
  }
  limit(*tube, out);
  FlushedBatch batch = parts_.moves.take_jobs_at_rest(tube);
  const std::uint64_t count = batch.size();
  finish(now, std::move(batch), count, out);
  return count;
}

// Epochs are numbers of 16 bits: a tube must not come back to one that flushed jobs still have.
void Flushes::limit(const Tube& tube, FactSink& out) {
  if (tube.unremoved_flushes < FlushedJobs::kMaxBatchesOfTube) return;
  while (tube.unremoved_flushes > 0) remove_job(out);
}

// Steps 2 and 3.
void Flushes::finish(Time now, FlushedBatch batch, std::uint64_t count, FactSink& out) {
  Tube* tube = batch.tube;
  JobRemoval::count_deleted(*tube, count);
  parts_.unique_keys.flush(tube->name);
  add(std::move(batch));
  out.fact(Flushed{.tube = tube->name});
  parts_.registry.remove_if_unwanted(now, tube);
}

void Flushes::add(FlushedBatch batch) {
  if (batch.size() == 0) return;
  Tube* tube = batch.tube;
  ++tube->epoch;
  for (JobHistory* held = tube->reserved.first(); held != nullptr; held = JobList::next(held)) {
    held->job->epoch = tube->epoch;  // truncated, and still in the tube
  }
  parts_.flushed.add(std::move(batch));
}

void Flushes::remove_job(FactSink& out) {
  const JobId id = parts_.flushed.next()->id;
  forget(parts_.flushed.next());
  out.fact(Removed{.id = id});
}

void Flushes::forget(Job* job) {
  const JobId id = job->id;
  const bool parked = job->concurrency() != nullptr && job->concurrency()->parked;
  if (job->tags() != nullptr) parts_.tags.free(*job);
  parts_.flushed.erase(job, parked);  // and its tube, if that was removed and this is its last job
  parts_.memory.give_back(job->body.size());
  parts_.jobs.remove(id);
}

void Flushes::remove_next(FactSink& log) {
  if (parts_.flushed.empty()) return parts_.unique_keys.end_next(log);
  remove_job(log);
}

}  // namespace tubed::engine
