#include "engine/job_removal.h"

#include "engine/job_facts.h"

namespace tubed::engine {

void JobRemoval::erase_with_cooldown(Time now, Job* job, FactSink& out) {
  const JobId id = job->id;
  const bool cools_down = unique_keys_.begin_cooldown(now, *job);
  Unit unit(out, cools_down);
  erase(job, out);
  if (cools_down) emit_cooldown(*unique_keys_.of_deleted_job(id), out);
}

void JobRemoval::drop_truncated(Time now, Job* job, FactSink& out) {
  Tube* tube = job->tube;
  erase(job, out);
  registry_.remove_if_unwanted(now, tube);
}

}  // namespace tubed::engine
