#include "server/server.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/reload.h"
#include "os/clock.h"
#include "os/process.h"
#include "protocol/reply.h"
#include "server/exit_codes.h"
#include "server/identity.h"

namespace tubed::server {

using os::Log;

namespace {

constexpr std::chrono::seconds kStopSlack{5};
// What a connection that was just taken has to say is on its way: it is waited for so long.
constexpr std::chrono::milliseconds kStopGrace{200};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : ",").append(word);
  return text;
}

}  // namespace

Server::Server(loop::Loop& loop, Log& log, const Settings& settings, Reload reload)
    : loop_(loop),
      log_(log),
      settings_(settings),
      reload_(std::move(reload)),
      service_(settings.queue, identify(), this_process()),
      turn_(
          loop, [this] { end_tick(); }, [this] { serve_deferred(); }),
      delay_timer_(loop, [this] { begin_tick(); }),
      ttr_timer_(loop, [this] { begin_tick(); }),
      pause_timer_(loop, [this] { begin_tick(); }),
      patience_timer_(loop, [this] { close_impatient(); }),
      journal_timer_(loop, [this] { begin_tick(); }),
      stop_timer_(loop, [this] { stop_now("time is up"); }),
      grace_timer_(loop, [this] { finish_silent(); }),
      drain_timer_(loop,
                   [this] {
                     log_.warning("drain.timeout is over", {{"status", status()}});
                     end_drained();
                   }),
      supervision_(loop, [this] { return status(); }) {
  apply(settings);
  loop::ignore_broken_pipes();
  const auto on = [&](int number, std::function<void()> arrived) {
    signals_.push_back(std::make_unique<loop::Signal>(loop, number, std::move(arrived)));
  };
  on(SIGUSR1, [this] { drain(true); });
  on(SIGUSR2, [this] { drain(false); });
  on(SIGHUP, [this] { this->reload(); });
  on(SIGTERM, [this] { asked_to_stop(); });
  on(SIGINT, [this] { asked_to_stop(); });
}

Server::~Server() {
  // Conversations give their jobs back to the queue: they go first.
  clients_.clear();
}

// --- Listeners

Result<void> Server::listen(std::vector<os::InheritedSocket> inherited) {
  auto opened = TRY(open_listeners(log_, settings_, std::move(inherited)));
  for (OpenListener& one : opened) {
    if (one.info.protocol == Protocol::http) {
      if (endpoint_ == nullptr)
        endpoint_ = std::make_unique<Endpoint>(loop_, log_, service_, *this);
      endpoint_->listen(std::move(one.socket), one.path);
      continue;
    }
    inherits_ = inherits_ || !one.info.inherited.empty();
    listeners_.push_back(std::make_unique<loop::Listener>(loop_, std::move(one.socket), one.path,
                                                          protocol::word::kOutOfMemory, *this));
  }
  set_limits();
  return {};
}

Result<void> Server::recover() {
  if (settings_.journal_directory.empty()) return {};
  // Whatever recovery changes survives being cut off.
  const loop::ExitAtSignal exit_at_signal({SIGTERM, SIGINT});
  journal_ = TRY(JournalOwner::open(loop_, log_, settings_, service_,
                                    {.moved = [this] { journal_moved(); },
                                     .failed = [this] { journal_failed(); },
                                     .now = [this] { return journal_time(); }}));
  return {};
}

void Server::on_connection(os::Socket socket) {
  begin_tick();
  if (client_count_ >= settings_.connections) {
    service_.counters().count(stats::Counter::refused_connection);
    os::refuse_connection(std::move(socket), protocol::word::kOutOfMemory);
    log_.limited(Log::Level::warning, service_.now(), "connection refused",
                 {{"limits.connections", std::uint64_t{settings_.connections}}});
    return;
  }
  auto client = std::make_unique<Client>(loop_, std::move(socket), service_, *this);
  if (!client->usable()) return on_accept_trouble("the kernel watches no more connections", 1);
  const SessionId session = client->session();
  log_.limited(Log::Level::debug, service_.now(), "connected",
               {{"session", std::uint64_t{session}}});
  patience_.add(*client, service_.now());
  if (session >= clients_.size()) clients_.resize(session + 1);
  clients_[session] = std::move(client);
  ++client_count_;
  // While input is held it must be known as one who would be read from.
  look_after(*clients_[session]);
}

void Server::on_accept_trouble(const std::string& reason, std::uint64_t refused) {
  begin_tick();
  service_.counters().count(stats::Counter::refused_connection, refused);
  log_.limited(Log::Level::error, service_.now(), "cannot take connections",
               {{"reason", reason}, {"refused", refused}});
}

void Server::close(Client& client, std::string_view reason) {
  const SessionId session = client.session();
  log_.limited(Log::Level::debug, service_.now(), "closed",
               {{"session", std::uint64_t{session}}, {"reason", reason}});
  patience_.remove(client);
  count_output(client, 0);
  if (client.waits_to_the_end) --waiting_count_;
  clients_[session].reset();
  --client_count_;
}

// --- What operators ask for

void Server::apply(const Settings& settings) {
  settings_ = settings;
  set_limits();
  patience_.set_limits({.idle = settings.idle_timeout, .stall = settings.stall_timeout});
  log_.configure(static_cast<Log::Level>(settings.log_level),
                 static_cast<Log::Format>(settings.log_format));
  if (journal_ != nullptr) journal_->apply(settings);
  for (const auto& listener : listeners_) {
    os::tune_connection(listener->socket(), settings.tcp_keepalive);
  }
}

void Server::set_limits() {
  Limits queue = settings_.queue;
  if (endpoint_ == nullptr) queue.tallied_tubes = 0;  // nobody asks for them
  service_.set_limits(queue, {.line_bytes = settings_.line_bytes,
                              .output_bytes = settings_.output_bytes,
                              .input_memory = settings_.input_memory});
}

void Server::reload() {
  if (stopping()) return;
  begin_tick();
  supervision_.reloading();
  auto fresh = reload_();
  if (!fresh) {
    log_.error("not reloaded", {{"reason", fresh.error().message}});
    supervision_.reloaded("not reloaded: " + fresh.error().message);
    return;
  }
  const ReloadPlan plan = plan_reload(settings_, *fresh);
  apply(plan.next);
  log_.info("reloaded", {{"changed", plan.changed.empty() ? "nothing" : joined(plan.changed)},
                         {"note", "flags and the environment are read only at a start"}});
  advise_restart(plan.needs_restart);
  if (service_.draining()) limit_drain();
  supervision_.reloaded("");
}

// A restart changes no address that systemd keeps open.
void Server::advise_restart(std::vector<std::string> settings) {
  const auto is_of_a_unit = [&](std::string_view key, const std::string& command) {
    if (!inherits_ || std::erase(settings, key) == 0) return;
    log_.warning("the address is set in a unit", {{"setting", key}, {"to_change", command}});
  };
  is_of_a_unit("listen", edit_command(kTcpUnit));
  is_of_a_unit("http.listen", endpoint_ != nullptr ? edit_command(kHttpUnit) : kEnableHttp);
  if (!settings.empty()) log_.warning("needs a restart", {{"settings", joined(settings)}});
}

// Once is a wish, and twice an order; that it has drained meanwhile is nobody's signal.
void Server::asked_to_stop() {
  if (std::exchange(asked_to_stop_, true)) return stop_now("asked again");
  stop();
}

void Server::stop() {
  if (stopping()) return;
  begin_tick();
  phase_ = Phase::stopping;
  log_.info("stopping", {{"connections", std::uint64_t{client_count_}}});
  listeners_.clear();
  drain_timer_.disarm();
  stop_timer_.arm(settings_.shutdown_timeout);
  // Every wait ends before the first client is closed: the jobs that it gives back must not wander
  // from one worker to the next, to be started by each.
  for (const auto& client : clients_) {
    if (client == nullptr || !client->conversation().waiting()) continue;
    client->conversation().stop_waiting();
    client->waits_to_the_end = true;
    ++waiting_count_;
  }
  for (const auto& client : clients_) {
    if (client == nullptr) continue;
    // Those who do not wait begin no wait any more.
    client->conversation().stop_waiting();
    look_after(*client);
  }
  grace_timer_.arm(kStopGrace);
  // Once for the clients, once for the journal.
  supervision_.stopping(2 * settings_.shutdown_timeout + kStopSlack);
}

// To close a connection that was taken and has not spoken would reset it as soon as it does.
bool Server::may_finish(const Client& client) const {
  return client.has_spoken() && !client.waits_to_the_end;
}

void Server::finish_silent() {
  begin_tick();
  for (const auto& client : clients_) {
    if (client == nullptr || client->waits_to_the_end || client->finishing()) continue;
    client->finish();
    look_after(*client);
  }
}

// When only those are left that waited in a reserve, it is their turn to be closed: who waits comes
// back at once, and until here there was still somebody to be answered.
bool Server::dismiss_waiting() {
  if (!stopping() || waiting_count_ == 0 || client_count_ > waiting_count_) return false;
  for (const auto& client : clients_) {
    if (client == nullptr || !std::exchange(client->waits_to_the_end, false)) continue;
    client->finish();
    look_after(*client);
  }
  waiting_count_ = 0;
  return true;
}

void Server::stop_now(std::string_view reason) {
  if (queue_closed()) {
    if (phase_ == Phase::closed) return;  // the loop ends already
    // Nobody waits for a reply any more. Without its mark the journal is as after a crash.
    const bool kept = service_.log().durable() == service_.log().appended();
    if (kept) {
      log_.warning("stopped before the journal had its end", {{"reason", reason}});
    } else {
      log_.error("stopped while the journal was being written", {{"reason", reason}});
    }
    os::exit_now(kept ? 0 : kExitJournalFailed);
  }
  log_.warning("stopped with connections open",
               {{"reason", reason}, {"connections", std::uint64_t{client_count_}}});
  begin_tick();
  for (const auto& client : clients_) {
    if (client != nullptr) close(*client, "stopped");
  }
}

// Nobody is left: every job that was held goes back, and the journal gets its end.
void Server::close_queue() {
  if (queue_closed()) return;
  while (service_.engine().next_deadlines().closing) service_.begin_tick(service_.now());
  phase_ = Phase::closing;
  supervision_.refresh();
  stop_timer_.arm(settings_.shutdown_timeout);
  service_.log().close([this] {
    phase_ = Phase::closed;
    loop_.stop();
  });
}

bool Server::run() {
  supervision_.ready();
  loop_.run();
  if (journal_failed_) {
    listeners_.clear();  // their paths go with them
    endpoint_.reset();
  } else {
    log_.info("stopped");
  }
  return !journal_failed_;
}

}  // namespace tubed::server
