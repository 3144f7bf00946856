// JournalOwner: the journal of a server, with all that it needs: its directory, its recovery, its
// clock. It reports to the log and to the server, and answers what the journal asks of the engine.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "commands/service.h"
#include "config/settings.h"
#include "journal/journal.h"
#include "loop/clock_watch.h"
#include "loop/file_storage.h"
#include "os/log.h"

namespace tubed::server {

class JournalOwner final : public journal::JournalHost {
 public:
  // How the journal reaches the server.
  struct Events {
    std::function<void()> moved;   // flush() is to be called soon
    std::function<void()> failed;  // the reason is logged; nothing may be acknowledged from now on
    std::function<Time()> now;     // the time of the tick, which begins if there is none
  };

  // Opens the directory, restores the jobs into the engine of `service` (beanstalkd's binlogs
  // first, if there are any), and makes the journal the log of `service`. It blocks, and logs its
  // progress. The error is one line. All that is given outlives the owner.
  static Result<std::unique_ptr<JournalOwner>> open(loop::Loop& loop, os::Log& log,
                                                    const Settings& settings,
                                                    commands::Service& service, Events events);

  // The settings of a reload.
  void apply(const Settings& settings);

  void request_flush() override;
  void report_failure(const std::string& reason) override;
  void report_full(bool full, const std::string& reason) override;
  void describe_job(JobId id, FactSink& sink) override;
  void describe_delay(JobId id, FactSink& sink) override;
  Time now() const override { return events_.now(); }
  journal::WallClock wall_clock() const override;

 private:
  JournalOwner(os::Log& log, const Settings& settings, commands::Service& service, Events events)
      : log_(log), settings_(settings), service_(service), events_(std::move(events)) {}

  Result<void> import();
  Result<void> recover();
  journal::Options options() const;

  os::Log& log_;
  Settings settings_;
  commands::Service& service_;
  Events events_;
  std::unique_ptr<loop::FileStorage> storage_;
  std::unique_ptr<journal::Journal> journal_;
  journal::WallClock clock_;  // when it was opened
  std::unique_ptr<loop::ClockWatch> clock_watch_;
  std::uint64_t new_directory_ = 0;
  bool boot_noted_ = false;
};

}  // namespace tubed::server
