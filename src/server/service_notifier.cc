#include "server/service_notifier.h"

#include <algorithm>

#include "os/service_manager.h"

namespace tubed::server {

namespace {

// The status is sent at this interval; `systemctl status` shows the last line.
constexpr std::chrono::seconds kStatusInterval{5};

}  // namespace

ServiceNotifier::ServiceNotifier(loop::Loop& loop, std::function<std::string()> status)
    : status_(std::move(status)), timer_(loop, [this] { refresh_regularly(); }) {
  const Duration watchdog = os::watchdog_interval();
  has_watchdog_ = watchdog > Duration::zero();
  // Half of the interval, as sd_watchdog_enabled(3) recommends.
  period_ = has_watchdog_ ? std::min<Duration>(watchdog / 2, kStatusInterval) : kStatusInterval;
}

void ServiceNotifier::ready() {
  if (!os::has_service_manager()) return;
  ready_ = true;
  sent_ = status_();
  os::notify_ready(sent_);
  timer_.arm(period_);
}

void ServiceNotifier::refresh() {
  if (!ready_) return;
  std::string status = status_();
  if (status == sent_) return;
  sent_ = std::move(status);
  os::notify_status(sent_);
}

void ServiceNotifier::reloading() {
  if (ready_) os::notify_reloading();
}

void ServiceNotifier::reloaded(const std::string& note) {
  if (!ready_) return;
  sent_ = status_();
  if (!note.empty()) sent_ = note + "; " + sent_;
  os::notify_ready(sent_);
}

void ServiceNotifier::stopping(Duration at_most) {
  if (!ready_) return;
  sent_ = status_();
  os::notify_stopping(sent_, at_most);
}

void ServiceNotifier::refresh_regularly() {
  if (has_watchdog_) os::notify_watchdog();
  refresh();
  timer_.arm(period_);
}

}  // namespace tubed::server
