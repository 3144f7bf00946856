// Engine: the queries of stats, stats-tube and stats-job.
#include <algorithm>

#include "engine/engine.h"

namespace tubed::engine {

EngineInfo Engine::info() const {
  EngineInfo info = counts_;
  info.tubes = tubes_.size();
  info.watches = watch_count_;
  info.memory_bytes = memory_.bytes();
  return info;
}

std::optional<TubeInfo> Engine::tube_info(Time now, std::string_view name) const {
  const Tube* tube = tubes_.find(name);
  if (tube == nullptr) return std::nullopt;
  TubeInfo info{.name = tube->name,
                .jobs = {.urgent = tube->urgent_count,
                         .ready = tube->ready.size(),
                         .reserved = tube->reserved_count,
                         .delayed = tube->delayed.size(),
                         .buried = tube->buried.size()},
                .total_jobs = tube->total_jobs,
                .using_count = tube->using_count,
                .watching_count = tube->watching_count,
                .waiting_count = tube->waiting.size(),
                .delete_count = tube->delete_count,
                .pause_count = tube->pause_count,
                .pause = tube->pause,
                .pause_left = {}};
  if (tube->paused()) info.pause_left = std::max(tube->pause_until - now, Duration::zero());
  return info;
}

std::optional<JobInfo> Engine::job_info(Time now, JobId id) const {
  const Job* job = jobs_.find(id);
  if (job == nullptr) return std::nullopt;
  JobInfo info{.id = job->id,
               .tube = job->tube->name,
               .state = job->state,
               .priority = job->priority,
               .age = std::max(now - job->created, Duration::zero()),
               .delay = job->delay(),
               .ttr = job->ttr,
               .time_left = {},
               .counters = job->counters()};
  const bool timed = job->state == JobState::reserved || job->state == JobState::delayed;
  if (timed) info.time_left = std::max(job->deadline - now, Duration::zero());
  return info;
}

}  // namespace tubed::engine
