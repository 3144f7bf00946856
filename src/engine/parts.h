// Parts: what the queue consists of, in the order in which the parts refer to each other.
//
// JobTable, TubeTable and SessionTable own the records (tables/job.h), and TagRecords the records
// of tags. TubeRegistry creates and removes tubes, and WatchLists changes the watch lists of
// sessions. JobMoves takes a job from one place to another, JobRemoval ends it, and Lives applies
// policies and tags to a job that comes back or expires. Tags sets the tags of a job, whose effects
// are in UniqueKeys, ConcurrencyKeys, Groups and Expiries. ReservationLimits bounds what a tube
// gives. JobWaiters answers the sessions that wait for the end of a job.
// DeadlineIndex knows what is due, and ServeQueue which tubes can serve a waiting session.
// TubeMetricsRegistry counts for the metrics of each tube, and TubeActivity reads how busy it is.
#pragma once

#include <cstdint>

#include "engine/job_moves.h"
#include "engine/job_removal.h"
#include "engine/lives.h"
#include "engine/policies.h"
#include "engine/recorded_reservations.h"
#include "engine/tags.h"
#include "engine/tube_activity.h"
#include "engine/tube_registry.h"
#include "engine/watch_lists.h"
#include "facts/info.h"
#include "facts/types.h"
#include "tables/concurrency_keys.h"
#include "tables/deadline_index.h"
#include "tables/expiries.h"
#include "tables/flushed_jobs.h"
#include "tables/groups.h"
#include "tables/job_memory.h"
#include "tables/job_table.h"
#include "tables/job_waiters.h"
#include "tables/reservation_limits.h"
#include "tables/serve_queue.h"
#include "tables/session_table.h"
#include "tables/tag_records.h"
#include "tables/tube_metrics.h"
#include "tables/tube_table.h"
#include "tables/unique_keys.h"

namespace tubed::engine {

struct Parts {
  explicit Parts(const Limits& bounds)
      : limits(bounds),
        memory(limits),
        job_waiters(deadlines, entries_walked),
        tag_records(memory, extended),
        unique_keys(jobs, tag_records, memory),
        concurrency_keys(limits, tubes, serve_queue, memory, entries_walked),
        groups(memory),
        expiries(tubes, serve_queue, tag_records),
        reservation_limits(tubes, deadlines, serve_queue),
        activity(tubes, entries_walked),
        registry(limits, tubes, tube_metrics, activity, policies, deadlines, flushed, expiries,
                 reservation_limits, extended),
        watch_lists(limits, tubes, registry, entries_walked),
        moves(tubes, deadlines, serve_queue, concurrency_keys, groups, unique_keys,
              reservation_limits, entries_walked, extended),
        tags(tag_records, unique_keys, concurrency_keys, groups, expiries, moves, memory, extended),
        removal(jobs, moves, memory, tags, unique_keys, registry),
        lives(moves, removal, registry, tag_records, expiries, job_waiters, serve_queue, extended),
        recorded(sessions, deadlines) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  Limits limits;
  // Policies, keys, groups, times to live, waits for jobs or set_giving() are used, or were.
  bool extended = false;
  std::uint64_t entries_walked = 0;
  EngineInfo counts;  // only the counts that no part has
  JobTable jobs;
  Policies policies;
  TubeTable tubes;
  TubeMetricsRegistry tube_metrics;
  SessionTable sessions;
  DeadlineIndex deadlines;
  ServeQueue serve_queue;  // empty between calls
  JobMemory memory;
  FlushedJobs flushed;
  JobWaiters job_waiters;
  TagRecords tag_records;
  UniqueKeys unique_keys;
  ConcurrencyKeys concurrency_keys;
  Groups groups;
  Expiries expiries;
  ReservationLimits reservation_limits;
  TubeActivity activity;
  TubeRegistry registry;
  WatchLists watch_lists;
  JobMoves moves;
  Tags tags;
  JobRemoval removal;
  Lives lives;
  RecordedReservations recorded;
};

}  // namespace tubed::engine
