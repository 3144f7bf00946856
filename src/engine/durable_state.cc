#include "engine/durable_state.h"

#include "engine/job_facts.h"

namespace tubed::engine {

void DurableState::describe(Time now, JobId id, FactSink& sink) const {
  if (const Job* job = parts_.jobs.find_present(id); job != nullptr) {
    emit_job(*job, now, sink);
    return parts_.recorded.describe(*job, sink);
  }
  const UniqueKey* key = parts_.unique_keys.of_deleted_job(id);
  if (key != nullptr && !key->tube->flushed && key->until > now) return emit_cooldown(*key, sink);
  sink.fact(Removed{.id = id});
}

void DurableState::describe_delay(Time now, JobId id, FactSink& sink) const {
  const Job* job = parts_.jobs.find_present(id);
  if (job == nullptr) {
    const UniqueKey* key = parts_.unique_keys.of_deleted_job(id);
    if (key != nullptr && !key->tube->flushed) emit_cooldown(*key, sink);
    return;
  }
  // A job whose delay has ended is ready and keeps its delay as a value. No fact was emitted then.
  const bool was_delayed = job->resting_state == JobState::ready && job->delay().count > 0;
  if (job->resting_state != JobState::delayed && !was_delayed)
    return parts_.recorded.describe(*job, sink);
  emit_place_at(*job, now, sink);
  parts_.recorded.describe(*job, sink);
}

void DurableState::visit(Time now, FactSink& sink) const {
  parts_.jobs.for_each([&](const Job& job) {
    if (job.flushed()) return;
    emit_job(job, now, sink);
    parts_.recorded.describe(job, sink);
  });
  for (const auto& tube : parts_.tubes.all()) {
    if (!tube->paused() || tube->pause_until <= now) continue;
    sink.fact(Paused{.tube = tube->name, .duration = tube->pause, .until = tube->pause_until});
  }
  // The highest id was used even if its job was deleted.
  if (parts_.jobs.next_id() > 1 && parts_.jobs.find_present(parts_.jobs.next_id() - 1) == nullptr) {
    sink.fact(Removed{.id = parts_.jobs.next_id() - 1});
  }
  parts_.unique_keys.for_each_cooldown([&](const UniqueKey& key) {
    if (key.until > now) emit_cooldown(key, sink);
  });
  parts_.policies.for_each(
      [&](std::string_view tube, std::string_view key, std::string_view value) {
        sink.fact(PolicySet{.tube = tube, .key = key, .value = value});
      });
}

}  // namespace tubed::engine
