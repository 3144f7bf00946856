#include "http/history_keeper.h"

#include <utility>

#include <fmt/format.h>

#include "disk/directory_tree.h"
#include "os/clock.h"

namespace tubed::http {

namespace {

using disk::DirectoryTree;

// In a thread of the pool.
Result<void> write_file(const std::string& directory, const api::DayHistory& day, Duration wall) {
  DirectoryTree tree(directory);
  auto stored = tree.store(HistoryKeeper::kFileName, day.to_file(wall));
  // On a full disk, the partly written file must not take space from the journal.
  if (!stored && stored.error().kind == Error::Kind::no_space)
    static_cast<void>(tree.remove(std::string(HistoryKeeper::kFileName) + ".new"));
  return stored;
}

}  // namespace

HistoryKeeper::HistoryKeeper(loop::Loop& loop, os::Log& log, commands::Service& service,
                             std::function<void()> begin_tick)
    : log_(log),
      service_(service),
      begin_tick_(std::move(begin_tick)),
      write_(loop),
      timer_(loop, [this] { sample(); }) {}

api::DayHistory::Moment HistoryKeeper::now() const {
  return {.wall = os::wall_time(), .steady = os::boot_time_now()};
}

void HistoryKeeper::set_on(bool on) {
  if (on == on_) return;
  on_ = on;
  if (on) {
    timer_.arm({});
    return load();
  }
  timer_.disarm();
  hour_.clear();
  day_ = {};
}

void HistoryKeeper::open(const std::string& directory) {
  has_day_ = true;
  directory_ = directory;
  if (on_) load();
}

void HistoryKeeper::load() {
  if (!has_day_ || directory_.empty()) return;
  next_write_ = now().steady + kWriteInterval;
  const auto file = DirectoryTree(directory_).read(kFileName, api::DayHistory::kMostFileBytes);
  if (file && !*file) return;
  const auto loaded = file ? day_.load(**file, now().wall) : Result<void>(file.error());
  if (loaded) return;
  log_.warning("history dropped", {{"file", fmt::format("{}/{}", directory_, kFileName)},
                                   {"reason", loaded.error().message}});
}

void HistoryKeeper::sample() {
  timer_.arm(api::History::kInterval);
  begin_tick_();
  const auto moment = now();
  const protocol::Block stats = service_.stats_block();
  hour_.add(static_cast<std::uint64_t>(whole_seconds(moment.wall)), stats);
  if (!has_day_) return;
  day_.sample(moment, stats, service_.engine());
  if (directory_.empty() || moment.steady < next_write_ || write_.busy()) return;
  next_write_ = moment.steady + kWriteInterval;
  if (!service_.log().stats().full) begin_write();
}

void HistoryKeeper::begin_write() {
  write_.run([directory = directory_, day = day_,
              wall = now().wall] { return write_file(directory, day, wall); },
             [this](const Result<void>& result) { written(result); });
}

void HistoryKeeper::written(const Result<void>& result) {
  if (!result && !write_failed_) {
    log_.warning("the history is not kept over a restart",
                 {{"file", fmt::format("{}/{}", directory_, kFileName)},
                  {"reason", result.error().message}});
  }
  if (result && write_failed_) log_.info("the history is kept over a restart again");
  write_failed_ = !result;
  if (!closed_) return;
  // A write that began before the end does not have the last samples.
  if (on_) {
    on_ = false;
    begin_write();
  } else {
    std::exchange(closed_, nullptr)();
  }
}

void HistoryKeeper::close(std::function<void()> done) {
  timer_.disarm();
  if (!on_ || !has_day_ || directory_.empty()) return done();
  day_.sample(now(), service_.stats_block(), service_.engine());
  closed_ = std::move(done);
  if (write_.busy()) return;
  on_ = false;
  begin_write();
}

}  // namespace tubed::http
