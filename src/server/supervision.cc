#include "server/supervision.h"

#include <algorithm>

#include "platform/supervisor.h"

namespace tubed::server {

namespace {

// How old the status may be. Nobody reads it more often than that.
constexpr std::chrono::seconds kStatusEvery{5};

}  // namespace

Supervision::Supervision(platform::Loop& loop, std::function<std::string()> status)
    : status_(std::move(status)), timer_(loop, [this] { beat(); }) {
  const Duration watchdog = platform::watchdog_interval();
  has_watchdog_ = watchdog > Duration::zero();
  // Half of it, as sd_watchdog_enabled(3) recommends.
  period_ = has_watchdog_ ? std::min<Duration>(watchdog / 2, kStatusEvery) : kStatusEvery;
}

void Supervision::ready() {
  if (!platform::has_supervisor()) return;
  ready_ = true;
  told_ = status_();
  platform::tell_supervisor_ready(told_);
  timer_.arm(period_);
}

void Supervision::refresh() {
  if (!ready_) return;
  std::string status = status_();
  if (status == told_) return;
  told_ = std::move(status);
  platform::tell_supervisor_status(told_);
}

void Supervision::reloading() {
  if (ready_) platform::tell_supervisor_reloading();
}

void Supervision::reloaded(const std::string& note) {
  if (!ready_) return;
  told_ = status_();
  if (!note.empty()) told_ = note + "; " + told_;
  platform::tell_supervisor_ready(told_);
}

void Supervision::stopping(Duration at_most) {
  if (!ready_) return;
  told_ = status_();
  platform::tell_supervisor_stopping(told_, at_most);
}

void Supervision::beat() {
  if (has_watchdog_) platform::tell_supervisor_alive();
  refresh();
  timer_.arm(period_);
}

}  // namespace tubed::server
