// Output: what the engine emits while it works: facts for the log, notices for waiting sessions,
// and retirements for test mode.
#pragma once

#include <string_view>

#include "base/bytes.h"
#include "facts/fact.h"
#include "facts/types.h"

namespace tubed::engine {

// The answer to a session's reserve or wait. Engine::reserve() or wait_for_job() returns it at
// once, or it is emitted when the session's wait ends.
struct Notice {
  enum class Kind : std::uint8_t {
    reserved,
    timed_out,
    deadline_soon,
    // Only to a wait for a job:
    deleted,
    buried,
    not_found,  // at once, or after the job has moved to a tube that the session may not see
  };

  SessionId session = 0;
  Kind kind = Kind::reserved;
  JobId job = 0;  // that is reserved, or that the session waited for; 0: it waited in a reserve
  Bytes body;     // of a reserved job
};

// A policy or a tag has decided that a job is dead or has expired. The facts about the place where
// it goes follow, and are the same as for a command: a log needs no retirement.
struct Retirement {
  JobId job = 0;
  DeathReason reason = DeathReason::none;
  std::string_view to;   // `bury`, `delete` or a tube; valid during Output::retired()
  JobCounters counters;  // with the reservation that has ended, if one has
};

// Called in the middle of the engine's work: an implementation must not call the engine.
class Output : public FactSink {
 public:
  virtual void notice(const Notice& notice) = 0;
  virtual void retired(const Retirement& /*retirement*/) {}
  // Returns false if the session may not see the jobs of the tube. Called for a session that waits
  // for a job, when the job has moved to the tube.
  virtual bool may_see(SessionId /*session*/, std::string_view /*tube*/) const { return true; }

 protected:
  ~Output() = default;
};

}  // namespace tubed::engine
