// Facts: the only way durable state changes. Replaying every fact emitted so far, in order, into an
// empty engine gives the same durable state; recovery, compaction and replication rest on it.
//
// A reservation is no fact: a reserved job rests, durably, where it last came to rest.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "engine/types.h"

namespace tubed {

// How often each thing happened to a job.
struct JobCounters {
  std::uint32_t reserves = 0;
  std::uint32_t timeouts = 0;
  std::uint32_t releases = 0;
  std::uint32_t buries = 0;
  std::uint32_t kicks = 0;

  friend bool operator==(const JobCounters&, const JobCounters&) = default;
};

// Where a job rests. A delayed job whose time has come rests ready: that needs no fact of its own.
struct Placement {
  JobState state = JobState::ready;  // never reserved
  Priority priority = 0;
  Seconds delay;                 // as last asked for
  Time until;                    // delayed: when it becomes ready
  std::uint64_t bury_order = 0;  // buried: its place among the buried, smallest first

  friend bool operator==(const Placement&, const Placement&) = default;
};

// A job exists from now on.
struct Added {
  JobId id = 0;
  std::string_view tube;  // valid while the fact is being told
  Seconds ttr;
  Time created;
  Bytes body;
  Placement place;
  JobCounters counters;
};

// A job came to rest, whatever brought it there.
struct Placed {
  JobId id = 0;
  Placement place;
  JobCounters counters;
};

// A job is gone. Of an id that no job has, it only says that the id was used.
struct Removed {
  JobId id = 0;
};

// A tube gives no jobs until `until`; a duration of 0 means that it gives jobs again.
struct Paused {
  std::string_view tube;  // valid while the fact is being told
  Seconds duration;
  Time until;
};

using Fact = std::variant<Added, Placed, Removed, Paused>;

// The id that a fact uses up, after which it is not given to another job; 0: none. (A job that is
// placed exists already.)
inline JobId id_used_by(const Fact& fact) {
  struct {
    JobId operator()(const Added& added) const { return added.id; }
    JobId operator()(const Placed& /*placed*/) const { return 0; }
    JobId operator()(const Removed& removed) const { return removed.id; }
    JobId operator()(const Paused& /*paused*/) const { return 0; }
  } id;
  return std::visit(id, fact);
}

class FactSink {
 public:
  virtual void fact(const Fact& fact) = 0;

 protected:
  ~FactSink() = default;
};

}  // namespace tubed
