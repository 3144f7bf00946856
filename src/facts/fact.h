// Facts: the only way durable state changes.
//
// The replay law: all facts emitted so far, replayed in order into an empty engine, give the same
// durable state. Recovery, compaction and replication depend on it; the random tests check it.
//
// The durable state is: the jobs with their bodies, tags and marks, the place where each job rests,
// its counters, the pauses, the cooldowns of unique keys, the values that clients have set for the
// policies of tubes, and the highest id that was used. A job rests where it is ready, delayed or
// buried; a fact is emitted for each new resting place, whatever the reason was (put, release,
// bury, kick, timeout, a closed session).
//
// - A reservation is a fact only in a queue that records reservations: `Held`. Otherwise a reserved
//   job rests, durably, where it was before, so a restart makes it available again.
// - The end of a delay, of a pause or of a cooldown is not a fact. The fact that began it carries
//   the time; a replay at a later time finds the job ready, the tube not paused or the key free.
// - Facts name jobs by id and tubes by name. A tube exists in a replay if a job or a pause needs
//   it.
// - DurableState::visit() emits a minimal list of facts for a given state. It may replace all
//   facts before it.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "facts/types.h"

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

// The place where a job rests. A delayed job whose delay has ended rests ready without a further
// fact.
struct Placement {
  JobState state = JobState::ready;  // never reserved
  Priority priority = 0;
  Seconds delay;                 // as put or release last set it
  Time until;                    // delayed: when it becomes ready
  std::uint64_t bury_order = 0;  // buried: its place among the buried, smallest first

  friend bool operator==(const Placement&, const Placement&) = default;
};

// A job was added.
struct Added {
  JobId id = 0;
  std::string_view tube;  // valid during FactSink::fact()
  Seconds ttr;
  Time created;
  Bytes body;
  Placement place;
  JobCounters counters;
};

// The same, for a job that has tags or marks. Their texts are valid during FactSink::fact().
struct AddedWithTags : Added {
  JobTags tags;
  JobMarks marks = {};
};

// A job came to rest, whatever brought it there, and has no marks.
struct Placed {
  JobId id = 0;
  Placement place;
  JobCounters counters;
};

// The same, for a job that has marks. Their texts are valid during FactSink::fact().
struct PlacedWithMarks : Placed {
  JobMarks marks;
};

// A job was deleted, or its unique key is no longer remembered. If neither was there, the fact only
// marks the id as used.
struct Removed {
  JobId id = 0;
};

// A tube gives no jobs until `until`; a duration of 0 means that it gives jobs again.
struct Paused {
  std::string_view tube;  // valid during FactSink::fact()
  Seconds duration;
  Time until;
};

// All jobs that rest in the tube are gone, reserved jobs included, and its unique keys are free.
// `Removed` of each follows sooner or later and changes nothing.
struct Flushed {
  std::string_view tube;  // valid during FactSink::fact()
};

// The unique key of a job that was deleted stays taken. `Removed` of the id ends that early.
struct Remembered {
  JobId id = 0;
  std::string_view tube;  // valid during FactSink::fact(), as `key`
  std::string_view key;
  Time until;
};

// A job has moved to another tube, in the same resting place.
struct Moved {
  JobId id = 0;
  std::string_view tube;   // valid during FactSink::fact()
  bool keeps_key = false;  // its unique key, if it has one, was free there
};

// A client set a value of the policy of a tube, which need not exist;
// kNoPolicyValue: it took the value away.
struct PolicySet {
  std::string_view tube;  // valid during FactSink::fact(), as `key` and `value`
  std::string_view key;
  std::string_view value;
};

// A session holds the job until that time, or for a shorter time. The job's next Placed, Removed or
// Moved ends this, and a Flushed of its tube. Emitted only if reservations are recorded
// (RecordedReservations::record_to).
struct Held {
  JobId id = 0;
  Time until;
};

// The position of a replicated log: all entries up to it are in the facts before. It is no
// state of the queue, and a replay ignores it.
struct Applied {
  std::uint64_t index = 0;
  std::uint64_t term = 0;
  std::uint64_t chain = 0;  // a checksum of the entries up to `index`

  friend bool operator==(const Applied&, const Applied&) = default;
};

using Fact = std::variant<Added, Placed, Removed, Paused, Flushed, AddedWithTags, Remembered, Moved,
                          PlacedWithMarks, PolicySet, Held, Applied>;

// The job that a fact adds, with tags or without; null: it adds none.
inline const Added* added_in(const Fact& fact) {
  if (const auto* added = std::get_if<Added>(&fact)) return added;
  return std::get_if<AddedWithTags>(&fact);
}
inline Added* added_in(Fact& fact) {
  return const_cast<Added*>(added_in(std::as_const(fact)));
}

// The id that a fact uses up, which no later job gets, or 0. (A job that is placed or held exists
// already.)
inline JobId id_used_by(const Fact& fact) {
  struct {
    JobId operator()(const Added& added) const { return added.id; }
    JobId operator()(const Placed& /*placed*/) const { return 0; }
    JobId operator()(const Removed& removed) const { return removed.id; }
    JobId operator()(const Paused& /*paused*/) const { return 0; }
    JobId operator()(const Flushed& /*flushed*/) const { return 0; }
    JobId operator()(const Remembered& remembered) const { return remembered.id; }
    JobId operator()(const Moved& /*moved*/) const { return 0; }
    JobId operator()(const PolicySet& /*policy*/) const { return 0; }
    JobId operator()(const Held& /*held*/) const { return 0; }
    JobId operator()(const Applied& /*applied*/) const { return 0; }
  } id;
  return std::visit(id, fact);
}

// Takes facts one by one, in order. Texts in a fact need not outlive the call.
class FactSink {
 public:
  virtual void fact(const Fact& fact) = 0;
  // The facts between the two calls are a unit: a log stores them together or not at all. Units do
  // not nest. Their facts are about one job, with the tube, the key and the cooldown that it
  // touches, so a unit has one body at most (docs/ARCHITECTURE.md lists all units).
  virtual void begin_unit() {}
  virtual void end_unit() {}

 protected:
  ~FactSink() = default;
};

// The facts that are emitted to the sink while it exists, or until end(), are a unit.
class Unit {
 public:
  // Without `several` it does nothing: the cause emits one fact.
  explicit Unit(FactSink& sink, bool several = true) : sink_(several ? &sink : nullptr) {
    if (sink_ != nullptr) sink_->begin_unit();
  }
  ~Unit() { end(); }
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  void end() {
    if (sink_ != nullptr) std::exchange(sink_, nullptr)->end_unit();
  }

 private:
  FactSink* sink_;
};

}  // namespace tubed
