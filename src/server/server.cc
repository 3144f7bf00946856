// A start calls load_access(), listen(), recover(), begin_test_mode() and run() in this order.
// listen() opens the sockets: connections wait in the kernel while recover() restores the jobs.
// run() serves until the lifecycle stops the loop. The rest connects parts: callbacks of the
// listeners, the scheduler and the handlers of HTTP, and a reload, which passes new settings to
// each part.
#include "server/server.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "node/node_directory.h"
#include "os/clock.h"
#include "os/exit_codes.h"
#include "server/process_identity.h"

namespace tubed::server {

using os::Log;

Server::Server(loop::Loop& loop, Log& log, const Settings& settings, ReadSettings read,
               const std::optional<TestModeOptions>& test_mode)
    : loop_(loop),
      log_(log),
      settings_(settings),
      service_(settings.queue,
               test_mode ? identify_for_tests(TestServer::begin_of_time(settings)) : identify(),
               test_mode ? this_process_for_tests() : this_process()),
      clients_(log, service_),
      scheduler_(loop, service_, clients_, *this),
      admin_http_(loop, log, service_, *this),
      listeners_(loop, log, *this, admin_http_),
      authenticator_(loop, log, service_, clients_, scheduler_),
      http_api_(loop, log, service_, clients_, scheduler_, authenticator_),
      notifier_(loop, [this] { return status_line(service_, lifecycle_, clients_.count()); }),
      lifecycle_(loop, log, service_, settings_, clients_, scheduler_, listeners_, notifier_),
      reloads_(loop,
               {.log = log,
                .service = service_,
                .clients = clients_,
                .scheduler = scheduler_,
                .listeners = listeners_,
                .notifier = notifier_,
                .lifecycle = lifecycle_},
               std::move(read), *this),
      watched_(loop, log, [this](access::WatchedFiles kind) { watched_files_changed(kind); }) {
  service_.set_host(*this);
  admin_http_.set_site(http_api_);
  lifecycle_.on_closed(
      [this](std::function<void()> done) { http_api_.history().close(std::move(done)); });
  clients_.on_refused(
      [this](std::unique_ptr<loop::Channel> channel) { listeners_.hold(std::move(channel)); });
  apply(settings);
  loop::ignore_broken_pipes();
  if (test_mode) {
    test_ = std::make_unique<TestServer>(
        loop, service_, *test_mode,
        TestServer::Events{.end_drain = [this] { lifecycle_.drain(false); },
                           .stop = [this] { lifecycle_.stop_at_once(); }});
  }
  const auto on = [&](int number, std::function<void()> arrived) {
    signals_.push_back(std::make_unique<loop::Signal>(loop, number, std::move(arrived)));
  };
  on(SIGUSR1, [this] { lifecycle_.drain(true); });
  on(SIGUSR2, [this] { lifecycle_.drain(false); });
  on(SIGHUP, [this] { reloads_.reload(); });
  on(SIGTERM, [this] { lifecycle_.stop_requested(); });
  on(SIGINT, [this] { lifecycle_.stop_requested(); });
}

Server::~Server() {
  // A conversation that is closed gives its jobs back to the queue, which emits facts to the log:
  // clients are destroyed before both. Requests over HTTP refer to clients, and to the API.
  admin_http_.close();
  clients_.close_all("destroyed");
}

Result<void> Server::load_access() {
  apply(TRY(access::load_access_files(settings_)));
  return {};
}

Result<void> Server::listen(std::vector<os::InheritedSocket> inherited) {
  TRY(listeners_.open(settings_, access_.listeners, std::move(inherited)));
  set_limits();
  if (!settings_.cluster.enabled()) return {};
  node::ClusterHost& host = *this;
  cluster_ = TRY(node::make_cluster_mode({.loop = loop_,
                                          .log = log_,
                                          .service = service_,
                                          .clients = clients_,
                                          .scheduler = scheduler_},
                                         settings_, host));
  lifecycle_.on_hand_over(
      [this](std::function<void()> done) { return cluster_->hand_over(std::move(done)); });
  TRY(cluster_->listen());
  cluster_->set_tls(access_.nodes);  // before the first connection
  return {};
}

Result<void> Server::recover() {
  if (settings_.journal_directory.empty()) {
    if (test_ == nullptr) {
      log_.info("memory only", {{"note",
                                 "jobs are lost when the server ends; -b DIR or "
                                 "journal.directory keeps them"}});
    }
    open_history();
    return {};
  }
  // Recovery may be interrupted anywhere: the next start completes its changes.
  const loop::ExitAtSignal exit_at_signal({SIGTERM, SIGINT});
  if (cluster_ != nullptr) {
    TRY(cluster_->start());
    open_history();
    return {};
  }
  TRY(node::refuse_node(settings_.journal_directory));
  test_wall_offset_ = test_wall_offset(service_.now());
  serving::JournalOwnerHost& host = *this;
  journal_ = TRY(serving::JournalOwner::open(loop_, log_, settings_, service_, host));
  open_history();
  return {};
}

// The history is shown by HTTP only.
void Server::open_history() {
  if (admin_http_.is_listening()) http_api_.history().open(settings_.journal_directory);
}

Duration Server::wall_offset() const {
  return test_ == nullptr ? os::wall_offset() : test_wall_offset_;
}

void Server::journal_failed() {
  lifecycle_.fail(os::kExitJournalFailed);
}

Result<void> Server::begin_test_mode() {
  if (test_ == nullptr) return {};
  TRY(test_->begin(clients_, scheduler_));
  return test_->announce(listeners_.client_addresses());
}

int Server::run() {
  listeners_.log_listening();
  notifier_.ready();
  // Now, because the limits of inotify are those of the user that the process has become.
  watched_.watch(settings_);
  loop_.run();
  if (lifecycle_.phase() != Phase::failed) {
    log_.info("stopped");
    return lifecycle_.exit_code();
  }
  // The process ends without destructors: the paths of unix sockets are removed here.
  listeners_.close_clients();
  admin_http_.close();
  return lifecycle_.exit_code();
}

// --- What the service asks

const stats::ClusterState* Server::cluster() {
  return cluster_ == nullptr ? nullptr : &cluster_->state();
}

void Server::drain_requested(commands::Service& /*service*/, bool draining, SessionId client) {
  lifecycle_.drain(draining, client);
}

commands::Authentication Server::authenticate(std::string_view token, SessionId session) {
  return authenticator_.authenticate(token, session);
}

void Server::audit(const commands::AuditEvent& event) {
  authenticator_.audit(event);
}

commands::ClientDetails Server::describe_client(SessionId session) {
  return clients_.describe(session);
}

// --- Connections and ticks

Admittance Server::admits_connection() {
  scheduler_.begin_tick();
  if (!serves() && !cluster_->forwards()) return Admittance::not_served;
  const std::size_t forwarded = cluster_ == nullptr ? 0 : cluster_->forwarded();
  if (clients_.connections() + forwarded < settings_.connections) return Admittance::admitted;
  service_.counters().count(stats::Counter::refused_connection);
  log_.limited(Log::Level::warning, service_.tick_time(), "connection refused",
               {{"limits.connections", std::uint64_t{settings_.connections}}});
  return Admittance::full;
}

void Server::on_connection(std::unique_ptr<loop::Channel> channel,
                           const serving::ConnectionOrigin& origin) {
  if (!serves()) return cluster_->forward(std::move(channel), origin);
  auto admitted = authenticator_.admit(*channel, origin);
  if (!admitted) return listeners_.hold(std::move(channel));
  serving::Client& client =
      clients_.add(std::move(channel), scheduler_, std::move(admitted->admission));
  client.is_forwarded = origin.is_forwarded;
  if (admitted->identity)
    client.identity = std::make_unique<serving::ClientIdentity>(*admitted->identity);
  // Dirty: the scheduler then knows it as a client to be read from when input is no longer paused.
  scheduler_.mark_dirty(client);
}

void Server::on_forwarded(std::unique_ptr<loop::Channel> channel,
                          const serving::ConnectionOrigin& origin) {
  const Admittance admittance = admits_connection();
  if (admittance == Admittance::full)
    channel->write(fmt::format("{}\r\n", protocol::word::kOutOfMemory));
  if (admittance != Admittance::admitted) return listeners_.hold(std::move(channel));
  on_connection(std::move(channel), origin);
}

void Server::on_handshake_failed(const std::string& address, std::string_view reason) {
  scheduler_.begin_tick();
  service_.counters().count(stats::Counter::failed_handshake);
  log_.limited(Log::Level::info, service_.tick_time(), "TLS handshake failed",
               {{"address", address}, {"reason", reason}});
}

void Server::on_header_failed(const std::string& address, std::string_view reason) {
  scheduler_.begin_tick();
  service_.counters().count(stats::Counter::failed_handshake);
  log_.limited(Log::Level::info, service_.tick_time(), "PROXY header failed",
               {{"address", address}, {"reason", reason}});
}

void Server::on_not_a_proxy(const std::string& address) {
  scheduler_.begin_tick();
  service_.counters().count(stats::Counter::refused_connection);
  log_.limited(Log::Level::warning, service_.tick_time(),
               "connection refused: not from a proxy of proxy_protocol", {{"address", address}});
}

void Server::on_accept_error(const std::string& reason, std::uint64_t refused) {
  scheduler_.begin_tick();
  service_.counters().count(stats::Counter::refused_connection, refused);
  log_.limited(Log::Level::error, service_.tick_time(), "cannot take connections",
               {{"reason", reason}, {"refused", refused}});
}

void Server::tick_ended() {
  heap_.update(service_.engine().memory().bytes());
  // Only the metrics show how long ticks take, and reading the clock costs something in each.
  if (admin_http_.is_listening())
    service_.counters().add_tick(os::monotonic_now() - service_.tick_time());
}

// A node that passes its clients on is ready for them.
std::string_view Server::unready() const {
  const bool stays = !lifecycle_.stopping() && !service_.draining();
  if (stays && cluster_ != nullptr && cluster_->knows_leader()) return "";
  return unready_reason(service_, lifecycle_);
}

std::string_view Server::not_leader() const {
  return not_leader_reason(service_, lifecycle_);
}

// --- Settings

void Server::apply(const Settings& settings) {
  settings_ = settings;
  set_limits();
  clients_.set_limits(settings);
  log_.configure(settings.log_level, settings.log_format);
  if (journal_ != nullptr) journal_->apply(settings);
  if (cluster_ != nullptr) cluster_->settings_changed();
  const loop::HandshakeLimits limits{.timeout = settings.handshake_timeout,
                                     .pending = settings.handshakes};
  listeners_.set_handshake_limits(limits);
  admin_http_.set_handshake_limits(limits);
  admin_http_.set_keep_alive(std::chrono::floor<std::chrono::seconds>(settings.http.keep_alive));
  http_api_.apply(settings);
}

// After the settings that the files belong to.
void Server::apply(access::AccessFiles files) {
  for (const std::string& line : complaints(files, os::wall_time()))
    log_.warning("check the access files", {{"reason", line}});
  authenticator_.apply(settings_.roles, files.identities);
  access_ = std::move(files);
  service_.counters().set_certificate_expiry(access::first_expiry(access_));
  listeners_.apply(settings_, access_.listeners);
  admin_http_.set_tls(access_.http);
  if (cluster_ != nullptr) cluster_->set_tls(access_.nodes);
}

void Server::set_limits() {
  service_.set_limits(settings_.queue, {.line_bytes = settings_.line_bytes,
                                        .output_bytes = settings_.output_bytes,
                                        .input_memory = settings_.input_memory});
  service_.set_patterns(settings_.policies);
}

Result<ReloadPlan> Server::apply_reload(const Settings& fresh) {
  ReloadPlan plan = plan_reload(settings_, fresh);
  TRY(listeners_.check(plan.next));
  auto files = TRY(access::load_access_files(plan.next));
  const bool new_secrets = cluster_ == nullptr ? false : TRY(cluster_->read_files(plan.next));
  std::vector<std::string> by_files = access::changed_files(access_, files);
  if (new_secrets) by_files.emplace_back("cluster.secret_file");
  for (std::string& setting : by_files) {
    if (std::ranges::find(plan.changed, setting) == plan.changed.end())
      plan.changed.push_back(std::move(setting));
  }
  apply(plan.next);
  apply(std::move(files));
  watched_.watch(settings_);
  return plan;
}

// Of the files that the settings in force name. The settings themselves are not read.
void Server::watched_files_changed(access::WatchedFiles kind) {
  if (lifecycle_.stopping()) return;
  begin_tick();
  auto files = access::reload_access_files(settings_, access_, kind);
  if (!files) return watched_.refused(kind, files.error().message);
  const std::vector<std::string> changed = access::changed_files(access_, *files);
  const bool was_refused = watched_.accepted(kind);
  if (changed.empty() && !was_refused) return;
  if (!changed.empty()) apply(std::move(*files));
  log_.info("reloaded",
            {{"changed", changed.empty() ? "nothing" : fmt::format("{}", fmt::join(changed, ","))},
             {"note", "the files have changed"}});
}

}  // namespace tubed::server
