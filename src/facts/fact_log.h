// FactLog: where the engine's facts go. A server always has one: NullLog keeps jobs in memory only,
// the Journal writes them to disk.
//
// Facts are numbered in the order in which they are appended. A reply that was made while
// appended() was n may be sent when durable() has reached n (law L4, the commit gate). Each log
// defines when a fact is durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/histogram.h"
#include "base/time.h"
#include "facts/fact.h"

namespace tubed {

// A position in the log of facts: the number of facts before it.
using Lsn = std::uint64_t;

// Reported by stats and metrics. Segments are files; bytes count the bytes of files.
struct LogStats {
  bool on_disk = false;  // false: jobs are in memory only, and all other members are 0
  std::uint64_t oldest_segment = 0;
  std::uint64_t current_segment = 0;
  std::uint64_t records_migrated = 0;  // copied by compaction, since the start
  std::uint64_t records_written = 0;   // facts, since the start
  std::uint64_t segment_bytes = 0;     // as configured, or more if the largest job needs it
  std::uint64_t file_bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t max_file_bytes = 0;  // as configured; 0: no bound
  std::uint64_t commits = 0;
  HistogramCounts commit_times;    // from a batch's write until it is durable
  HistogramCounts commit_records;  // facts in a batch
  bool full = false;               // writing waits for room
};

class FactLog : public FactSink {
 public:
  virtual ~FactLog() = default;

  // Appends a fact. Its texts need not outlive the call. O(bytes of the fact).
  void fact(const Fact& fact) override = 0;
  // Facts of a unit count as appended one by one. flush() is not called within a unit.
  void begin_unit() override = 0;
  void end_unit() override = 0;

  // How many facts were appended.
  Lsn appended() const { return appended_; }
  // How many of these are durable, counted from the first. Replies up to here may be sent.
  Lsn durable() const { return durable_; }

  // False: the log has no room for another job with a body of this size, in any tube. O(1)
  // amortised.
  virtual bool has_room_for(std::size_t body_bytes) const = 0;
  // True: too much waits to be written, and commands that may emit a fact have to wait. The caller
  // asks before each such command.
  virtual bool congested() const = 0;
  // Called once at the end of a tick. Writes the facts that the tick has appended, or delays them
  // to share the write with later facts. True: the caller calls it again in the next tick, without
  // waiting for an event.
  virtual bool flush() = 0;
  // The time at which flush() has work to do even if no event occurs; kNever: no such time.
  virtual Time next_deadline() const = 0;
  // Makes everything durable, marks the log as closed properly, and calls `closed`. After a failure
  // it does not call `closed`. No fact may follow. The caller keeps calling flush() until `closed`.
  virtual void close(std::function<void()> closed) = 0;

  virtual LogStats stats() const = 0;
  // The segment with the record of a job; 0: none. O(1).
  virtual std::uint64_t segment_of(JobId id) const = 0;

 protected:
  explicit FactLog(Lsn begin = 0) : appended_(begin), durable_(begin) {}

  Lsn appended_;
  Lsn durable_;
};

// NullLog: jobs are in memory only. It keeps nothing, and every fact counts as durable at once.
class NullLog : public FactLog {
 public:
  void fact(const Fact& /*fact*/) override {}
  void begin_unit() override {}
  void end_unit() override {}
  bool has_room_for(std::size_t /*body_bytes*/) const override { return true; }
  bool congested() const override { return false; }
  bool flush() override { return false; }
  Time next_deadline() const override { return kNever; }
  void close(std::function<void()> closed) override { closed(); }
  LogStats stats() const override { return {}; }
  std::uint64_t segment_of(JobId /*id*/) const override { return 0; }
};

}  // namespace tubed
