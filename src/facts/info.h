// The numbers of the queue that stats, stats-tube and stats-job report.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/latency_histogram.h"
#include "facts/fact.h"
#include "facts/types.h"

namespace tubed::engine {

struct StateCounts {
  std::uint64_t urgent = 0;  // ready with a priority below kUrgentBelow
  std::uint64_t ready = 0;
  std::uint64_t reserved = 0;
  std::uint64_t delayed = 0;
  std::uint64_t buried = 0;
  std::uint64_t held = 0;  // of the delayed

  std::uint64_t total() const { return ready + reserved + delayed + buried; }
  friend bool operator==(const StateCounts&, const StateCounts&) = default;
};

struct EngineInfo {
  StateCounts jobs;
  std::uint64_t timeouts = 0;    // reservations whose TTR passed
  std::uint64_t total_jobs = 0;  // ever put
  std::uint64_t tubes = 0;
  std::uint64_t sessions = 0;   // open now, also in the next three
  std::uint64_t producers = 0;  // have ever put
  std::uint64_t workers = 0;    // have ever reserved
  std::uint64_t waiting = 0;    // in a reserve
  std::uint64_t waiting_for_jobs = 0;
  std::uint64_t watches = 0;            // entries of all watch lists
  std::uint64_t memory_bytes = 0;       // counted against job_memory_bytes
  std::uint64_t deduplicated_jobs = 0;  // puts whose unique key was taken
  std::uint64_t concurrency_keys = 0;   // with a job that a client holds
  std::uint64_t dead_jobs = 0;          // that were tried as often as they may
  std::uint64_t expired_jobs = 0;
};

struct TubeInfo {
  std::string_view name;  // valid until the engine's next change
  StateCounts jobs;
  std::uint64_t total_jobs = 0;
  std::uint64_t using_count = 0;
  std::uint64_t watching_count = 0;
  std::uint64_t waiting_count = 0;
  std::uint64_t delete_count = 0;
  std::uint64_t pause_count = 0;
  Seconds pause;  // as last set, 0 when not paused
  Duration pause_left{};
  // Since the tube was created.
  std::uint64_t reserve_count = 0;
  std::uint64_t timeout_count = 0;
  std::uint64_t bury_count = 0;  // by the clients that held the jobs
  // Of the ready job that is given next (0: no job is ready), of the first delayed job to become
  // ready, and of the job that was buried first.
  JobId next_ready_id = 0;
  Duration next_delayed_age{};
  Duration first_buried_age{};
  // Of the oldest ready job, with the error of AgeSketch. For a tube without a metrics record of
  // its own, of the job that is given next.
  Duration oldest_ready_age{};
  // Of its metrics record, valid until the engine's next change. Null if it has none of its own.
  const LatencyHistogram* put_to_reserve = nullptr;
  const LatencyHistogram* reserve_to_delete = nullptr;
};

struct GroupInfo {
  std::string_view name;  // valid until the engine's next change
  StateCounts members;
  std::uint64_t held = 0;  // jobs that wait for it
};

struct JobInfo {
  JobId id = 0;
  std::string_view tube;  // valid until the engine's next change
  JobState state = JobState::ready;
  Priority priority = 0;
  Duration age{};
  Seconds delay;
  Seconds ttr;
  Duration time_left{};  // until it is ready again; 0 unless reserved or delayed
  JobCounters counters;
  std::uint32_t body_bytes = 0;
  JobTags tags;  // texts here and in `marks` are valid until the engine's next change
  JobMarks marks = {};
  bool held = false;  // delayed, and waits for its group

  // How many of its reservations have ended without its deletion.
  std::uint32_t failures() const {
    const bool runs = state == JobState::reserved && counters.reserves > 0;
    return counters.reserves - (runs ? 1U : 0U);
  }
};

}  // namespace tubed::engine
