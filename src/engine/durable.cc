// Engine: its durable state as facts, and jobs that are added as a fact describes them.
#include "engine/engine.h"
#include "engine/job_facts.h"

namespace tubed::engine {

void Engine::describe(Time now, JobId id, FactSink& sink) const {
  if (const Job* job = jobs_.find_present(id); job != nullptr) {
    emit_job(*job, now, sink);
    return emit_if_held(*job, sink);
  }
  const UniqueKey* key = unique_keys_.of_deleted_job(id);
  if (key != nullptr && !key->tube->flushed && key->until > now) return emit_cooldown(*key, sink);
  sink.fact(Removed{.id = id});
}

void Engine::describe_delay(Time now, JobId id, FactSink& sink) const {
  const Job* job = jobs_.find_present(id);
  if (job == nullptr) {
    const UniqueKey* key = unique_keys_.of_deleted_job(id);
    if (key != nullptr && !key->tube->flushed) emit_cooldown(*key, sink);
    return;
  }
  // A job whose delay has ended is ready and keeps its delay as a value. No fact was emitted then.
  const bool was_delayed = job->resting_state == JobState::ready && job->delay().count > 0;
  if (job->resting_state != JobState::delayed && !was_delayed) return emit_if_held(*job, sink);
  emit_place_at(*job, now, sink);
  emit_if_held(*job, sink);
}

void Engine::visit_durable(Time now, FactSink& sink) const {
  jobs_.for_each([&](const Job& job) {
    if (job.flushed()) return;
    emit_job(job, now, sink);
    emit_if_held(job, sink);
  });
  for (const auto& tube : tubes_.all()) {
    if (!tube->paused() || tube->pause_until <= now) continue;
    sink.fact(Paused{.tube = tube->name, .duration = tube->pause, .until = tube->pause_until});
  }
  // The highest id was used even if its job was deleted.
  if (jobs_.next_id() > 1 && jobs_.find_present(jobs_.next_id() - 1) == nullptr) {
    sink.fact(Removed{.id = jobs_.next_id() - 1});
  }
  unique_keys_.for_each_cooldown([&](const UniqueKey& key) {
    if (key.until > now) emit_cooldown(key, sink);
  });
  policies_.for_each([&](std::string_view tube, std::string_view key, std::string_view value) {
    sink.fact(PolicySet{.tube = tube, .key = key, .value = value});
  });
}

void Engine::replay(Time now, const Fact& fact) {
  TUBED_ASSERT(counts_.sessions == 0);
  replay_.apply(now, fact);
}

void Engine::add_job(Time now, const Added& added, const JobTags& tags, const JobMarks& marks,
                     Output& out) {
  TUBED_ASSERT(added.id >= jobs_.next_id());
  Added placed = added;
  placed.place.bury_order = moves_.next_bury_order();
  Job* job = replay_.add(now, placed);
  memory_.give_back(job->body.size());  // claimed by the caller and by the replay
  JobTags kept = tags;
  Unit unit(out, !tags.unique_key.empty());
  if (unique_keys_.taken(now, added.tube, tags.unique_key, out) != nullptr) kept.unique_key = {};
  memory_.give_back_part(tags_memory(tags) - tags_memory(kept) + marks_memory(tags, marks));
  if (kept.any()) tags_.set(*job, kept);
  if (marks.any()) tag_records_.set_marks(*job, marks);
  if (lives_.governs(*job)) expiries_.set(*job);
  if (!marks.after_done) moves_.wait_for_group(job);
  ++job->tube->total_jobs;
  ++job->tube->metrics->put_count;
  ++counts_.total_jobs;
  describe(now, added.id, out);
  unit.end();
  serve_queue_.push(job->tube);
  serve_waiting(now, out);
}

}  // namespace tubed::engine
