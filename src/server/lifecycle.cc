// The steps of a stop are numbered in lifecycle.h.
#include "server/lifecycle.h"

#include "base/planted.h"
#include "os/exit_codes.h"
#include "os/process.h"
#include "server/status.h"

namespace tubed::server {

namespace {

// More than a server that is stopping takes beyond its own limits.
constexpr std::chrono::seconds kStopSlack{5};
// How long the first command of a connection that was just accepted is awaited.
constexpr std::chrono::milliseconds kStopGrace{200};

}  // namespace

Lifecycle::Lifecycle(loop::Loop& loop, os::Log& log, commands::Service& service,
                     const Settings& settings, serving::Clients& clients,
                     serving::Scheduler& scheduler, Listeners& listeners, ServiceNotifier& notifier)
    : loop_(loop),
      log_(log),
      service_(service),
      settings_(settings),
      clients_(clients),
      scheduler_(scheduler),
      listeners_(listeners),
      notifier_(notifier),
      drain_timer_(loop, [this] { time_out_drain(); }),
      grace_timer_(loop, [this] { finish_silent(); }),
      stop_timer_(loop, [this] { stop_now("time is up"); }) {}

// --- Drain

void Lifecycle::drain(bool draining, std::optional<SessionId> client) {
  if (stopping() || handing_over_) return;
  scheduler_.begin_tick();  // the end of this tick may find the server drained already
  const char* const event = draining ? "draining" : "not draining";
  if (client) {
    log_.info(event, {{"session", std::uint64_t{*client}}});
  } else {
    log_.info(event);
  }
  if (service_.draining() != draining) {
    service_.set_draining(draining);
    scheduler_.set_winding_down(draining);
    draining_since_ = service_.tick_time();
    drain_settings_changed();
    if (drain_changed_) drain_changed_(draining);
  }
  notifier_.refresh();
}

bool Lifecycle::ends_by_drain() const {
  return service_.draining() && settings_.drain_exit != DrainExit::never;
}

// While workers get new jobs, a server with a backlog may never become idle. It becomes empty only
// if they do.
bool Lifecycle::refuses_reserves() const {
  return service_.draining() && settings_.drain_exit == DrainExit::when_idle &&
         settings_.drain_reserves == DrainReserves::refuse && !TUBED_PLANTED(drain_gives_out_jobs);
}

void Lifecycle::drain_settings_changed() {
  drain_timer_.disarm();
  if (ends_by_drain() && settings_.drain_timeout > Duration::zero()) {
    drain_timer_.arm(draining_since_ + settings_.drain_timeout - service_.tick_time());
  }
  service_.set_giving(!refuses_reserves());
}

bool Lifecycle::is_drained() const {
  if (!service_.draining()) return false;
  const auto jobs = service_.engine().info().jobs;
  switch (settings_.drain_exit) {
    case DrainExit::never:
      return false;
    case DrainExit::when_idle:
      return jobs.reserved == 0;
    case DrainExit::when_empty:
      return jobs.total() == 0;
  }
  return false;
}

void Lifecycle::time_out_drain() {
  if (handing_over_) return;
  interrupted_ = service_.engine().info().jobs.reserved;
  log_.warning(
      "drain.timeout is over",
      {{"interrupted", interrupted_}, {"status", status_line(service_, *this, clients_.count())}});
  if (!TUBED_PLANTED(drain_timeout_is_success)) exit_code_ = os::kExitDrainTimedOut;
  end_drain(DrainEnd::timed_out);
}

void Lifecycle::end_drain(DrainEnd end) {
  drain_end_ = end;
  stop();
}

// --- Stop

void Lifecycle::stop_requested() {
  if (std::exchange(stop_requested_, true)) return stop_now("asked again");
  stop();
}

void Lifecycle::stop_removed() {
  if (stop_requested_ || stopping()) return;  // this is not the second signal
  if (!TUBED_PLANTED(removal_is_a_usual_stop)) exit_code_ = os::kExitRemoved;
  stop_requested();
}

void Lifecycle::stop_at_once() {
  stop_requested();
  if (phase_ == Phase::stopping) stop_now("the test suite has ended");
}

// Step 0.
void Lifecycle::stop() {
  if (stopping() || handing_over_) return;
  handing_over_ = hand_over_ && hand_over_([this] { stop_clients(); });
  if (!handing_over_) return stop_clients();
  // The hand-over takes a time of its own, at most shutdown_timeout.
  notifier_.stopping(3 * settings_.shutdown_timeout + kStopSlack);
}

// Step 1.
void Lifecycle::stop_clients() {
  if (stopping()) return;
  scheduler_.begin_tick();
  phase_ = Phase::stopping;
  scheduler_.set_winding_down(true);
  log_.info("stopping", {{"connections", std::uint64_t{clients_.count()}}});
  listeners_.close_clients();
  drain_timer_.disarm();
  stop_timer_.arm(settings_.shutdown_timeout);
  clients_.stop_all();
  if (drained())
    clients_.for_each([](serving::Client& client) {
      commands::Conversation& conversation = client.conversation();
      conversation.answers().has_drained(conversation.command().in_progress());
    });
  scheduler_.mark_all_dirty();
  grace_timer_.arm(kStopGrace);
  // Once for the clients, once for the log.
  notifier_.stopping(2 * settings_.shutdown_timeout + kStopSlack);
}

// The end of step 2.
void Lifecycle::finish_silent() {
  scheduler_.begin_tick();
  clients_.for_each([this](serving::Client& client) {
    if (client.closes_last() || client.finishing()) return;
    client.finish();
    scheduler_.mark_dirty(client);
  });
}

bool Lifecycle::complete_tick() {
  if (phase_ == Phase::serving) {
    if (handing_over_ || !is_drained()) return false;
    log_.info("drained");
    end_drain(DrainEnd::reached);
    return true;
  }
  if (phase_ != Phase::stopping) return false;
  if (clients_.finish_last()) {
    scheduler_.mark_all_dirty();
    return true;
  }
  if (clients_.count() == 0) close_log();
  return false;
}

// Step 4, early.
void Lifecycle::stop_now(std::string_view reason) {
  stop_clients();
  if (ended_ || phase_ == Phase::failed) return;  // the loop ends already
  if (phase_ == Phase::closed) os::exit_now(exit_code_);
  if (phase_ == Phase::closing) {
    // No client waits for a reply. Without its mark of an orderly stop the log is as after a crash.
    const bool durable = service_.log().durable() == service_.log().appended();
    if (durable) {
      log_.warning("stopped before the journal had its end", {{"reason", reason}});
    } else {
      log_.error("stopped while the journal was being written", {{"reason", reason}});
    }
    os::exit_now(durable ? exit_code_ : os::kExitJournalFailed);
  }
  log_.warning("stopped with connections open",
               {{"reason", reason}, {"connections", std::uint64_t{clients_.count()}}});
  scheduler_.begin_tick();
  clients_.close_all("stopped");
}

// Step 4: no client is left, so every job that was reserved goes back to its tube.
void Lifecycle::close_log() {
  while (service_.next_deadlines().closing) service_.begin_tick(service_.tick_time());
  report_lost_jobs();
  phase_ = Phase::closing;
  scheduler_.freeze();
  notifier_.refresh();
  stop_timer_.arm(settings_.shutdown_timeout);
  service_.log().close([this] {
    phase_ = Phase::closed;
    if (!closed_) return end();
    closed_([this] { end(); });
  });
}

// Step 6.
void Lifecycle::end() {
  ended_ = true;
  loop_.stop();
}

// A test suite wants its jobs to be lost.
void Lifecycle::report_lost_jobs() const {
  const std::uint64_t jobs = service_.engine().info().jobs.total();
  if (!settings_.journal_directory.empty() || service_.test_hooks() != nullptr || jobs == 0) return;
  if (TUBED_PLANTED(jobs_are_lost_in_silence)) return;
  log_.warning("jobs are lost", {{"jobs", jobs}, {"reason", "there is no journal"}});
}

void Lifecycle::fail(int exit_code) {
  phase_ = Phase::failed;
  exit_code_ = exit_code;
  loop_.stop();
}

}  // namespace tubed::server
