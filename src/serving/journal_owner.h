// JournalOwner: the journal of a server, together with its directory, its recovery and its clock.
//
// It owns the FileStorage and the Journal, and is the JournalHost: it logs the events of the
// journal, passes them on to the server, and describes jobs of the engine to the compactor.
// Everything runs on the loop's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "commands/service.h"
#include "config/settings.h"
#include "disk/file_storage.h"
#include "journal/journal.h"
#include "loop/clock_watch.h"
#include "os/log.h"

namespace tubed::serving {

// The program around the journal.
class JournalOwnerHost {
 public:
  // FactLog::flush() must be called in the next tick.
  virtual void flush_requested() = 0;
  // The reason is logged. Nothing may be acknowledged afterwards.
  virtual void journal_failed() = 0;
  // Returns the time of the tick, and begins a tick if necessary.
  virtual Time journal_time() = 0;
  // The wall clock minus the time of the queue.
  virtual Duration wall_offset() const = 0;

 protected:
  ~JournalOwnerHost() = default;
};

// The journal of a node in a cluster has the committed changes, and their position in the log of
// the cluster. It uses the time of the cluster, which is wall clock time. Changes that it has not
// synced are in the raft log.
class Replication {
 public:
  // True if the engine may describe this job now (Replica::is_settled).
  virtual bool is_settled(JobId id) const = 0;
  // The time of the newest entry that is applied.
  virtual Time applied_time() const = 0;

 protected:
  ~Replication() = default;
};

class JournalOwner final : public journal::JournalHost {
 public:
  // Opens the directory, imports binlogs of beanstalkd if it has any, restores the jobs into the
  // engine of `service`, and makes the journal the log of `service`. Blocks while it reads the
  // journal, and logs the progress. The error is one line. The arguments passed by reference
  // outlive the owner; the settings do not. With a replication nothing is imported, the queue stays
  // a replaying queue, and the log of `service` is not changed.
  static Result<std::unique_ptr<JournalOwner>> open(loop::Loop& loop, os::Log& log,
                                                    const Settings& settings,
                                                    commands::Service& service,
                                                    JournalOwnerHost& host,
                                                    const Replication* replication = nullptr);

  // Applies the journal's settings after a reload.
  void apply(const Settings& settings);

  journal::Journal& journal() { return *journal_; }
  const journal::Journal& journal() const { return *journal_; }
  // The position of the journal when it was opened. Precondition: the journal belongs to a node.
  const Applied& applied() const { return *applied_; }
  // Returns when the journal is to be flushed, by the clock of ticks.
  Time next_deadline() const;
  // True if the disk has no room for more jobs.
  bool full() const { return full_; }
  // True while an operation on a file is under way.
  bool busy() const { return storage_->busy(); }

  void request_flush() override;
  void report_failure(const std::string& reason) override;
  void report_full(bool full, const std::string& reason) override;
  bool describe_job(JobId id, FactSink& sink) override;
  void describe_delay(JobId id, FactSink& sink) override;
  Time now() const override { return host_.journal_time() + ahead_; }
  Time settled_time() const override;
  journal::WallClock wall_clock() const override;

 private:
  JournalOwner(os::Log& log, commands::Service& service, JournalOwnerHost& host,
               const Replication* replication)
      : log_(log), service_(service), host_(host), replication_(replication) {}

  Result<void> import(std::uint64_t segment_bytes);
  Result<void> recover(const Settings& settings);
  Time describing_time() const;
  journal::Options options(const Settings& settings) const;

  os::Log& log_;
  commands::Service& service_;
  JournalOwnerHost& host_;
  const Replication* replication_;  // null: the server is in no cluster
  std::unique_ptr<disk::FileStorage> storage_;
  std::unique_ptr<journal::Journal> journal_;
  journal::WallClock clock_;  // at the time of open()
  Duration ahead_{};          // time of the journal minus time of the tick
  std::optional<Applied> applied_;
  std::unique_ptr<loop::ClockWatch> clock_watch_;
  std::uint64_t directory_id_ = 0;
  bool boot_noted_ = false;
  bool full_ = false;
};

}  // namespace tubed::serving
