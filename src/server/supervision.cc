#include "server/supervision.h"

#include <algorithm>

#include "os/service_manager.h"

namespace tubed::server {

namespace {

// How old the status may be. Nobody reads it more often than that.
constexpr std::chrono::seconds kStatusEvery{5};

}  // namespace

Supervision::Supervision(loop::Loop& loop, std::function<std::string()> status)
    : status_(std::move(status)), timer_(loop, [this] { beat(); }) {
  const Duration watchdog = os::watchdog_interval();
  has_watchdog_ = watchdog > Duration::zero();
  // Half of it, as sd_watchdog_enabled(3) recommends.
  period_ = has_watchdog_ ? std::min<Duration>(watchdog / 2, kStatusEvery) : kStatusEvery;
}

void Supervision::ready() {
  if (!os::has_service_manager()) return;
  ready_ = true;
  told_ = status_();
  os::notify_ready(told_);
  timer_.arm(period_);
}

void Supervision::refresh() {
  if (!ready_) return;
  std::string status = status_();
  if (status == told_) return;
  told_ = std::move(status);
  os::notify_status(told_);
}

void Supervision::reloading() {
  if (ready_) os::notify_reloading();
}

void Supervision::reloaded(const std::string& note) {
  if (!ready_) return;
  told_ = status_();
  if (!note.empty()) told_ = note + "; " + told_;
  os::notify_ready(told_);
}

void Supervision::stopping(Duration at_most) {
  if (!ready_) return;
  told_ = status_();
  os::notify_stopping(told_, at_most);
}

void Supervision::beat() {
  if (has_watchdog_) os::notify_alive();
  refresh();
  timer_.arm(period_);
}

}  // namespace tubed::server
