// Output: what the engine emits while it works, facts for the log and notices for waiting sessions.
#pragma once

#include "base/bytes.h"
#include "engine/fact.h"
#include "engine/types.h"

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
    not_found,  // at once
  };

  SessionId session = 0;
  Kind kind = Kind::reserved;
  JobId job = 0;  // that is reserved, or that the session waited for; 0: it waited in a reserve
  Bytes body;     // of a reserved job
};

// Called in the middle of the engine's work: an implementation must not call the engine.
class Output : public FactSink {
 public:
  virtual void notice(const Notice& notice) = 0;

 protected:
  ~Output() = default;
};

}  // namespace tubed::engine
