// Context: the state shared by all parts of one journal: the disk, the host, the current options
// and clock, and whether the journal is closing or has failed.
//
// The Journal owns it and passes it to each part. The parts form a chain: a part holds references
// to the parts that it uses, which do not refer back. When a part has finished a background
// operation, it calls `advance`, and the Journal then lets every part continue that may have waited
// for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "facts/fact.h"
#include "journal/record.h"
#include "journal/storage.h"

namespace tubed::journal {

struct Options {
  // When a commit is durable. Zero: after fsync. Otherwise after write; the fsync follows after
  // this interval, or never for Duration::max().
  Duration sync{};
  std::uint64_t segment_bytes = 10 << 20;
  std::uint64_t max_bytes = 0;  // limit on all files; 0: none
  std::uint64_t directory = 0;  // the identity of a new journal
  WallClock clock;              // at the opening of the journal; set_clock() replaces it
  // The host records reservations: a fact that describes a job may be followed by its `Held`.
  bool reservations = false;

  bool syncs_each_commit() const { return sync == Duration(); }
  bool syncs_by_interval() const { return sync > Duration() && sync != Duration::max(); }
};

// The program that runs the journal.
class JournalHost {
 public:
  // Something has changed, such as durable() or the free space: flush() should be called soon.
  virtual void request_flush() = 0;
  // Nothing more will become durable. Called once.
  virtual void report_failure(const std::string& reason) = 0;
  // Writing has begun or ceased to wait for space on the disk.
  virtual void report_full(bool full, const std::string& reason) = 0;
  // Emits the `Added` that describes this job after the facts appended so far, followed by its
  // `Held` if reservations are recorded and the job is held. Returns false, without emitting, if
  // this is not known now; the journal asks again in a later tick. Precondition: the job exists.
  virtual bool describe_job(JobId id, FactSink& sink) = 0;
  // Emits the `Placed` that describes where this job rests, if an earlier fact may have given a
  // time for it, and its `Held` as describe_job() does. Precondition: the job exists.
  virtual void describe_delay(JobId id, FactSink& sink) = 0;
  // Returns the time of the tick.
  virtual Time now() const = 0;
  // Deadlines up to this time have passed even for a recovered queue. Not after now().
  virtual Time settled_time() const { return now(); }
  // Returns the current wall clock. Called once in each tick that appends a fact.
  virtual WallClock wall_clock() const = 0;

 protected:
  ~JournalHost() = default;
};

struct Context {
  Storage& storage;
  JournalHost& host;
  std::uint64_t directory = 0;  // the identity of the journal
  Options options;
  WallClock clock;  // used to encode the times of all further records
  std::function<void()> advance;
  bool closing = false;
  bool failed = false;

  // Ends the journal: nothing more becomes durable. Only the first failure is reported to the host.
  void fail(const std::string& reason) {
    if (!std::exchange(failed, true)) host.report_failure(reason);
  }
  // Returns false if the part that receives this outcome must stop, because this or an earlier
  // operation has failed. A lack of space is not a failure.
  bool continues_after(const Outcome& outcome) {
    if (!failed && outcome.kind == Outcome::Kind::failed) fail(outcome.reason);
    return !failed;
  }

  std::int64_t wall_time() const { return clock.to_wall(host.now()); }
};

}  // namespace tubed::journal
