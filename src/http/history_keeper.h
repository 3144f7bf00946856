// HistoryKeeper: takes the samples of the history of the API, and keeps those of the day over a
// restart, in the file `history` of the journal directory.
//
//   1. open() reads the file. One that is damaged, of another version or from the future is
//      dropped, and the log says why.
//   2. Every kWriteInterval a thread of the pool replaces the file: it writes history.new, syncs it
//      and renames it. The loop's thread only copies the points.
//   3. close(), when the journal is closed, writes the file once more.
//
// The file matters to nothing else. A write that fails is logged once, until one succeeds, and
// changes nothing for the queue. While the journal has no room, nothing is written. Without a
// journal the history is in memory only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/day_history.h"
#include "api/history.h"
#include "commands/service.h"
#include "loop/loop.h"
#include "loop/pool_task.h"
#include "loop/timer.h"
#include "os/log.h"

namespace tubed::http {

class HistoryKeeper {
 public:
  static constexpr const char* kFileName = "history";
  static constexpr Duration kWriteInterval = std::chrono::minutes(5);

  // `begin_tick` is called before the queue is looked at. Everything outlives the object.
  HistoryKeeper(loop::Loop& loop, os::Log& log, commands::Service& service,
                std::function<void()> begin_tick);

  // Begins or ends the samples. At their end all are forgotten, and the file stays as it is.
  void set_on(bool on);
  // The directory of the journal, which this process owns, or none: empty. Begins the history of
  // the day. Reads the file if the samples are on, else when they begin. O(bytes of the file).
  void open(const std::string& directory);
  // Takes the last samples, writes the file if there is one, and calls `done`, perhaps at once.
  void close(std::function<void()> done);

  const api::History& hour() const { return hour_; }
  const api::DayHistory& day() const { return day_; }

 private:
  void sample();
  void load();
  void begin_write();
  void written(const Result<void>& result);
  api::DayHistory::Moment now() const;

  os::Log& log_;
  commands::Service& service_;
  std::function<void()> begin_tick_;
  api::History hour_;
  api::DayHistory day_;
  bool on_ = false;
  bool has_day_ = false;   // open() was called
  std::string directory_;  // empty: there is no file
  Time next_write_;
  bool write_failed_ = false;  // and that is logged
  std::function<void()> closed_;
  loop::PoolTask write_;
  loop::Timer timer_;
};

}  // namespace tubed::http
