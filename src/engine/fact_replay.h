// FactReplay: what facts do to an engine that has no session (the law is in facts/fact.h).
//
// A fact makes the same moves as the command that has emitted it, but emits nothing and serves no
// session.
#pragma once

#include "base/time.h"
#include "engine/flushes.h"

namespace tubed::engine {

class FactReplay {
 public:
  // They outlive it.
  FactReplay(Parts& parts, Flushes& flushes) : parts_(parts), flushes_(flushes) {}

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

  Parts& parts_;
  Flushes& flushes_;
};

}  // namespace tubed::engine
