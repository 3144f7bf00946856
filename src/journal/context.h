// Context: what all parts of one journal share: the disk, the host, the options in force, the clock
// in force, and whether the journal is closing or has failed.
//
// The Journal owns it and passes it to each part. The parts form a chain: a part holds references
// to the parts that it uses, and none of these refers back to it. A part that has finished a
// background operation calls `advance`, and the Journal then lets every part go on that may have
// waited for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "engine/fact.h"
#include "journal/record.h"
#include "journal/storage.h"

namespace tubed::journal {

struct Options {
  // When a commit is durable. Zero: after fsync. Otherwise after write; the fsync follows that much
  // later, or never for Duration::max().
  Duration sync{};
  std::uint64_t segment_bytes = 10 << 20;
  std::uint64_t max_bytes = 0;  // of all files; 0: no bound
  std::uint64_t directory = 0;  // the identity of a journal that is new
  WallClock clock;              // when the journal is opened; set_clock() replaces it later
  // The host records reservations: the fact that describes a job may be followed by its `Held`.
  bool reservations = false;

  bool syncs_each_commit() const { return sync == Duration(); }
  bool syncs_by_interval() const { return sync > Duration() && sync != Duration::max(); }
};

// The program that runs the journal, as the journal sees it.
class JournalHost {
 public:
  // Something has changed, such as durable() or the free space: flush() is to be called soon.
  virtual void request_flush() = 0;
  // Nothing more can be made durable. Called once.
  virtual void report_failure(const std::string& reason) = 0;
  // Writing waits for space on the disk, or no longer does.
  virtual void report_full(bool full, const std::string& reason) = 0;
  // Emits the `Added` that describes this job as it is after the facts that were appended, followed
  // by its `Held` if reservations are recorded and it is held. False: this is not known now, and
  // nothing was emitted; the journal asks again in a later tick. Precondition: the job exists.
  virtual bool describe_job(JobId id, FactSink& sink) = 0;
  // Emits the `Placed` that describes where this job rests, if an earlier fact may have given a
  // time for it, and its `Held` as describe_job() does. Precondition: the job exists.
  virtual void describe_delay(JobId id, FactSink& sink) = 0;
  // The time of the tick.
  virtual Time now() const = 0;
  // Deadlines up to this time have passed also for a queue that is recovered. Not after now().
  virtual Time settled_time() const { return now(); }
  // The wall clock as it is now. Called once in each tick that appends a fact.
  virtual WallClock wall_clock() const = 0;

 protected:
  ~JournalHost() = default;
};

struct Context {
  Storage& storage;
  JournalHost& host;
  std::uint64_t directory = 0;  // the identity of the journal
  Options options;
  WallClock clock;  // ties the times of all records that are encoded from now on to the wall clock
  std::function<void()> advance;
  bool closing = false;
  bool failed = false;

  // Ends the journal: nothing becomes durable any more. The host hears of the first failure only.
  void fail(const std::string& reason) {
    if (!std::exchange(failed, true)) host.report_failure(reason);
  }
  // Whether the part that receives this outcome goes on: false after a failure, whether in this
  // operation or earlier. A lack of space is not a failure.
  bool continues_after(const Outcome& outcome) {
    if (!failed && outcome.kind == Outcome::Kind::failed) fail(outcome.reason);
    return !failed;
  }

  std::int64_t wall_time() const { return clock.to_wall(host.now()); }
};

}  // namespace tubed::journal
