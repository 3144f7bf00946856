// What the engine says while it works: facts for the journal, notices for sessions that wait.
#pragma once

#include "base/bytes.h"
#include "engine/fact.h"
#include "engine/types.h"

namespace tubed::engine {

// The answer to a session's reserve: Engine::reserve() returns it, or it comes when the wait ends.
struct Notice {
  enum class Kind : std::uint8_t { reserved, timed_out, deadline_soon };

  SessionId session = 0;
  Kind kind = Kind::reserved;
  JobId job = 0;  // reserved only, as is the body
  Bytes body;
};

// Told in the middle of an engine's work: an implementation must not call back into the engine.
class Output : public FactSink {
 public:
  virtual void notice(const Notice& notice) = 0;

 protected:
  ~Output() = default;
};

}  // namespace tubed::engine
