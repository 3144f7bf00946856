#include "engine/job_facts.h"

#include "tables/tag_records.h"

namespace tubed::engine {

namespace {

Added as_added(const Job& job) {
  JobCounters counters = job.counters();
  if (job.state == JobState::reserved) --counters.reserves;  // this reservation is not durable
  return {.id = job.id,
          .tube = job.tube->name,
          .ttr = job.ttr,
          .created = job.created,
          .body = job.body,
          .place = resting_place(job),
          .counters = counters};
}

Added as_it_rests(const Job& job, Time now) {
  Added added = as_added(job);
  // The delay has ended, even if advance() has not made the job ready yet. But a job that waits for
  // a group may be held then.
  const bool delayed = added.place.state == JobState::delayed && !job.waits_for_group();
  if (delayed && added.place.until <= now) {
    added.place.state = JobState::ready;
    added.place.until = {};
  }
  return added;
}

void emit(const Added& added, const JobTags& tags, const JobMarks& marks, FactSink& sink) {
  if (!tags.any() && !marks.any()) return sink.fact(added);
  sink.fact(AddedWithTags{added, tags, marks});
}

void emit(const Placed& placed, const JobMarks& marks, FactSink& sink) {
  if (!marks.any()) return sink.fact(placed);
  sink.fact(PlacedWithMarks{placed, marks});
}

}  // namespace

Placement resting_place(const Job& job) {
  const bool delayed = job.resting_state == JobState::delayed;
  const bool buried = job.resting_state == JobState::buried;
  return {.state = job.resting_state,
          .priority = job.priority,
          .delay = job.delay(),
          .until = delayed ? job.made_history->resting_until : Time(),
          .bury_order = buried ? job.made_history->bury_order : 0};
}

void emit_added(const Job& job, FactSink& sink) {
  sink.fact(as_added(job));
}

void emit_placed(const Job& job, FactSink& sink) {
  const auto placed = [&job] {
    return Placed{.id = job.id, .place = resting_place(job), .counters = job.counters()};
  };
  if (job.tags() != nullptr) [[unlikely]]
    return emit(placed(), marks_of(job), sink);
  sink.fact(placed());
}

void emit_resting_place(const Job& job, FactSink& sink) {
  const Added resting = as_added(job);
  const Placed placed{.id = job.id, .place = resting.place, .counters = resting.counters};
  emit(placed, marks_of(job), sink);
}

void emit_job(const Job& job, Time now, FactSink& sink) {
  emit(as_it_rests(job, now), tags_of(job), marks_of(job), sink);
}

void emit_place_at(const Job& job, Time now, FactSink& sink) {
  const Added resting = as_it_rests(job, now);
  const Placed placed{.id = job.id, .place = resting.place, .counters = resting.counters};
  emit(placed, marks_of(job), sink);
}

void emit_held(const Job& job, FactSink& sink) {
  sink.fact(Held{.id = job.id, .until = job.deadline});
}

void emit_cooldown(const UniqueKey& key, FactSink& sink) {
  sink.fact(Remembered{.id = key.id, .tube = key.tube->tube, .key = *key.name, .until = key.until});
}

}  // namespace tubed::engine
