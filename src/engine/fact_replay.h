// FactReplay: what facts do to an engine that has no session (the law is in engine/fact.h).
//
// A fact makes the same moves as the command that has emitted it, but emits nothing and serves no
// session.
#pragma once

#include "base/time.h"
#include "engine/deadline_index.h"
#include "engine/expiries.h"
#include "engine/fact.h"
#include "engine/flushes.h"
#include "engine/groups.h"
#include "engine/job.h"
#include "engine/job_memory.h"
#include "engine/job_moves.h"
#include "engine/job_table.h"
#include "engine/lives.h"
#include "engine/policies.h"
#include "engine/session_table.h"
#include "engine/tag_records.h"
#include "engine/tags.h"
#include "engine/tube_registry.h"
#include "engine/tube_table.h"
#include "engine/unique_keys.h"

namespace tubed::engine {

class FactReplay {
 public:
  // The parts of the engine that facts change. All of them outlive it.
  struct Parts {
    JobTable& jobs;
    Policies& policies;
    TubeTable& tubes;
    SessionTable& sessions;
    DeadlineIndex& deadlines;
    JobMemory& memory;
    TagRecords& tag_records;
    UniqueKeys& unique_keys;
    Groups& groups;
    Expiries& expiries;
    TubeRegistry& registry;
    JobMoves& moves;
    Tags& tags;
    Lives& lives;
    Flushes& flushes;
  };
  explicit FactReplay(const Parts& parts)
      : jobs_(parts.jobs),
        policies_(parts.policies),
        tubes_(parts.tubes),
        sessions_(parts.sessions),
        deadlines_(parts.deadlines),
        memory_(parts.memory),
        tag_records_(parts.tag_records),
        unique_keys_(parts.unique_keys),
        groups_(parts.groups),
        expiries_(parts.expiries),
        registry_(parts.registry),
        moves_(parts.moves),
        tags_(parts.tags),
        lives_(parts.lives),
        flushes_(parts.flushes) {}

  // Applies a fact that an engine has emitted. Precondition: no session is open. O(log n).
  void apply(Time now, const Fact& fact);
  // Adds the job of a fact, in a tube that is created beyond the limit if necessary, and claims the
  // memory of its body without a limit. `waits`: the end of its delay does not make it ready.
  // O(log n).
  Job* add(Time now, const Added& added, bool waits = false);
  // After the last fact: groups without members are complete, buried jobs come into their order,
  // and the policies in force apply to all jobs. O(n) if a policy is set, else O(groups), and O(n
  // log n) for the buried jobs of tubes that were buried in disorder.
  [[gnu::cold]] void end();

 private:
  void apply_placed(Time now, const Placed& placed);
  void apply_removed(Time now, const Removed& removed);
  void apply_paused(Time now, const Paused& paused);
  void apply_flushed(Time now, const Flushed& flushed);
  void apply_remembered(const Remembered& remembered);
  void apply_moved(Time now, const Moved& moved);
  void apply_policy(Time now, const PolicySet& set);
  [[gnu::cold]] void apply_held(Time now, const Held& held);
  void add_tags(Job& job, const JobTags& tags);
  void attach(Time now, Job* job, const Placement& place, bool waits);

  JobTable& jobs_;
  Policies& policies_;
  TubeTable& tubes_;
  SessionTable& sessions_;
  DeadlineIndex& deadlines_;
  JobMemory& memory_;
  TagRecords& tag_records_;
  UniqueKeys& unique_keys_;
  Groups& groups_;
  Expiries& expiries_;
  TubeRegistry& registry_;
  JobMoves& moves_;
  Tags& tags_;
  Lives& lives_;
  Flushes& flushes_;
};

}  // namespace tubed::engine
