// HttpDaemon: the daemon of libmicrohttpd in the loop. It runs in its external mode: it has no
// thread and no listening socket, only an epoll descriptor and a timeout. The descriptor and a
// timer each let the daemon do its work. If it has more to do at once, it runs again in the next
// tick; until then events and timeouts do not run it, so it runs once per tick.
//
// The daemon may report work forever that it cannot do, for a request whose chunk header does not
// fit into its memory. After many runs without progress it runs at an interval only.
#pragma once

#include <functional>
#include <memory>

#include "loop/loop.h"
#include "loop/timer.h"

struct MHD_Daemon;

namespace tubed::loop {

class HttpDaemon {
 public:
  // Takes the daemon. `run_begins` is called before each run. `loop` outlives this object.
  HttpDaemon(Loop& loop, MHD_Daemon* daemon, std::function<void()> run_begins);

  MHD_Daemon* get() const { return daemon_.get(); }
  // The daemon has something to do that its descriptor and its timeout do not report.
  void run_soon() { set_work_pending(true); }
  // As run_soon(), for a connection that was resumed.
  void note_resumed();
  // The daemon has called back, and thus makes progress.
  void note_call() { called_back_ = true; }

 private:
  struct Stop {
    void operator()(MHD_Daemon* daemon) const;
  };

  void run();
  void run_unless_pending() {
    if (!work_pending_) run();
  }
  void set_work_pending(bool pending);

  std::function<void()> run_begins_;
  bool work_pending_ = false;
  bool has_resumed_ = false;  // the daemon has not called a resumed connection yet
  bool called_back_ = false;  // in this run
  int futile_runs_ = 0;       // consecutive runs without progress
  std::unique_ptr<MHD_Daemon, Stop> daemon_;
  Timer timer_;
  // Destroyed before the daemon closes the descriptor that `events_` watches.
  Handle<uv_idle_t> idle_;
  Handle<uv_poll_t> events_;
};

}  // namespace tubed::loop
