#include "loop/http_daemon.h"

#include <utility>

#include <microhttpd.h>

#include "base/assert.h"

namespace tubed::loop {

namespace {

constexpr int kMaxFutileRuns = 64;
constexpr Duration kFutileDelay = std::chrono::milliseconds(20);

}  // namespace

void HttpDaemon::Stop::operator()(MHD_Daemon* daemon) const {
  MHD_stop_daemon(daemon);
}

HttpDaemon::HttpDaemon(Loop& loop, MHD_Daemon* daemon, std::function<void()> run_begins)
    : run_begins_(std::move(run_begins)),
      daemon_(daemon),
      timer_(loop, [this] { run_unless_pending(); }),
      idle_(this),
      events_(this) {
  TUBED_ASSERT(daemon_ != nullptr);
  const int epoll = MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  TUBED_ASSERT(uv_poll_init(loop.uv(), events_.get(), epoll) == 0);
  uv_idle_init(loop.uv(), idle_.get());
  uv_poll_start(events_.get(), UV_READABLE, [](uv_poll_t* handle, int, int) {
    owner_of<HttpDaemon>(handle).run_unless_pending();
  });
}

// The daemon does not report work for a resumed connection through its epoll descriptor or timeout.
void HttpDaemon::note_resumed() {
  has_resumed_ = true;
  set_work_pending(true);
}

void HttpDaemon::run() {
  run_begins_();
  called_back_ = false;
  has_resumed_ = false;
  MHD_run(daemon_.get());
  MHD_UNSIGNED_LONG_LONG milliseconds = 0;
  const bool waits = MHD_get_timeout(daemon_.get(), &milliseconds) == MHD_YES;
  const bool has_work = has_resumed_ || (waits && milliseconds == 0);
  futile_runs_ = has_work && !called_back_ ? futile_runs_ + 1 : 0;
  const bool is_futile = futile_runs_ > kMaxFutileRuns;
  set_work_pending(has_work && !is_futile);
  if (is_futile) {
    timer_.arm(kFutileDelay);
  } else if (waits && milliseconds > 0) {
    timer_.arm(std::chrono::milliseconds(milliseconds));
  } else {
    timer_.disarm();
  }
}

void HttpDaemon::set_work_pending(bool pending) {
  if (std::exchange(work_pending_, pending) == pending) return;
  if (pending) {
    uv_idle_start(idle_.get(), [](uv_idle_t* handle) { owner_of<HttpDaemon>(handle).run(); });
  } else {
    uv_idle_stop(idle_.get());
  }
}

}  // namespace tubed::loop
