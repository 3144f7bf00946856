#include "access/authenticator.h"

#include <utility>

#include <fmt/format.h>

#include "base/planted.h"
#include "protocol/reply.h"

namespace tubed::access {

using commands::AuditEvent;
using os::Log;

namespace {

void send_line(loop::Channel& channel, std::string_view word) {
  channel.write(fmt::format("{}\r\n", word));
}

std::vector<Role> roles_of(const std::vector<RoleSettings>& settings) {
  std::vector<Role> roles;
  for (const RoleSettings& one : settings) roles.push_back(one.role);
  return roles;
}

}  // namespace

Authenticator::Authenticator(loop::Loop& loop, Log& log, commands::Service& service,
                             serving::Clients& clients, serving::Scheduler& scheduler)
    : log_(log),
      service_(service),
      clients_(clients),
      scheduler_(scheduler),
      refusal_timer_(loop, [this] { refuse_due(); }),
      audit_timer_(loop, [this] {
        scheduler_.begin_tick();
        end_audit_second();
      }) {}

Authenticator::~Authenticator() {
  end_audit_second();
}

void Authenticator::apply(const std::vector<RoleSettings>& roles, Identities identities) {
  identities_ = std::move(identities);
  service_.set_roles(roles_of(roles));
  close_revoked();
}

void Authenticator::close_revoked() {
  std::vector<serving::Client*> revoked;
  clients_.for_each([&](serving::Client& client) {
    const commands::Principal* principal = client.conversation().principal();
    if (principal == nullptr) return;
    const bool removed = principal->role() != nullptr && principal->role()->removed();
    if (removed || (client.identity && !identities_.still_has(*client.identity)))
      revoked.push_back(&client);
  });
  for (serving::Client* client : revoked) {
    if (client->conversation().command().awaits_reload()) {
      client->conversation().command().close_after_reload();
    } else {
      clients_.close(*client, "its role was removed");
    }
  }
}

// --- Connections

std::optional<serving::ClientIdentity> Authenticator::identity_of(
    const serving::ConnectionOrigin& origin) const {
  switch (origin.listen.auth) {
    case AuthMode::mtls:
      return identities_.of_certificate(origin.certificate);
    case AuthMode::peer:
      if (!origin.process) return std::nullopt;
      return identities_.of_process(*origin.process);
    case AuthMode::none:
    case AuthMode::token:
      break;
  }
  return std::nullopt;
}

std::optional<Authenticator::Admitted> Authenticator::admit(
    loop::Channel& channel, const serving::ConnectionOrigin& origin) {
  const Listen& listen = origin.listen;
  if (listen.auth == AuthMode::none && listen.role.empty()) return Admitted{};
  if (listen.auth == AuthMode::token)
    return Admitted{.admission = {.takes_tokens = true}, .identity = std::nullopt};
  const std::optional<serving::ClientIdentity> identity = identity_of(origin);
  // Only a listener without authentication has a role of its own.
  const std::string& name = identity ? identity->role : listen.role;
  commands::ActiveRole* role = service_.roles().find(name);
  if (role != nullptr && !role->is_full())
    return admitted(*role, identity, "listener " + to_string(listen));
  const bool is_full = role != nullptr;
  send_line(channel, is_full ? protocol::word::kOutOfMemory : protocol::word::kUnauthorized);
  service_.counters().count(stats::Counter::refused_connection);
  log_.limited(Log::Level::warning, service_.tick_time(),
               is_full ? "connection refused: its role is full" : "connection refused: no role",
               {{"address", channel.peer()},
                Log::optional("tls_name", channel.tls_name()),
                {"role", is_full ? name : ""},
                {"subject", origin.certificate.subject}});
  return std::nullopt;
}

// `listener`: the name of a client whom its listener has given the role.
Authenticator::Admitted Authenticator::admitted(
    commands::ActiveRole& role, const std::optional<serving::ClientIdentity>& identity,
    const std::string& listener) const {
  return {.admission = {.role = &role, .name = identity ? identity->name : listener},
          .identity = identity};
}

std::variant<Authenticator::Admitted, Authenticator::Refusal> Authenticator::admit(
    const loop::HttpPeer& peer, const HttpApiSettings& http,
    std::optional<std::string_view> token) {
  if (http.auth == AuthMode::none && http.role.empty()) return Admitted{};
  std::optional<serving::ClientIdentity> identity;
  if (http.auth == AuthMode::token && token) identity = identities_.of_token(*token);
  if (http.auth == AuthMode::mtls) identity = identities_.of_certificate(peer.certificate);
  if (http.auth == AuthMode::peer && peer.process) identity = identities_.of_process(*peer.process);
  commands::ActiveRole* role = service_.roles().find(identity ? identity->role : http.role);
  if (role != nullptr) return admitted(*role, identity, "HTTP");
  const Time now = service_.tick_time();
  service_.counters().count(stats::Counter::unauthorized);
  log_.limited(Log::Level::warning, now, "HTTP request refused: no role",
               {{"address", peer.address}, {"subject", peer.certificate.subject}});
  const bool is_wrong_token = http.auth == AuthMode::token && token;
  return Refusal{is_wrong_token ? failed_.add(peer.address, now) : Duration::zero()};
}

// --- Tokens

commands::Authentication Authenticator::authenticate(std::string_view token, SessionId session) {
  serving::Client* client = clients_.find(session);
  if (client == nullptr) return commands::Refused{};
  std::optional<serving::ClientIdentity> identity = identities_.of_token(token);
  commands::ActiveRole* role = identity ? service_.roles().find(identity->role) : nullptr;
  if (role == nullptr) return refuse_later(session, client->address());
  client->identity = std::make_unique<serving::ClientIdentity>(*identity);
  return commands::Granted{role, identity->name};
}

commands::Authentication Authenticator::refuse_later(SessionId session,
                                                     const std::string& address) {
  const Time now = service_.tick_time();
  const Time due = now + failed_.add(address, now);
  const auto added = refusals_.emplace(due, session);
  if (added == refusals_.begin()) refusal_timer_.arm(due - now);
  return commands::RefusedLater{};
}

void Authenticator::refuse_due() {
  scheduler_.begin_tick();
  const Time now = service_.tick_time();
  while (!refusals_.empty() && refusals_.begin()->first <= now) {
    const SessionId session = refusals_.begin()->second;
    refusals_.erase(refusals_.begin());
    // The session may have closed, and its id may belong to another client.
    serving::Client* client = clients_.find(session);
    if (client != nullptr && client->conversation().refuse()) scheduler_.mark_dirty(*client);
  }
  if (!refusals_.empty()) refusal_timer_.arm(refusals_.begin()->first - now);
}

// --- The log

void Authenticator::audit(const AuditEvent& event) {
  const serving::Client* client = clients_.find(event.session);
  const std::string address = client == nullptr ? "" : client->address();
  const std::string tls_name = client == nullptr ? "" : client->tls_name();
  const Log::Fields fields = {{"command", event.command},     {"tube", event.tube},
                              {"principal", event.principal}, {"role", event.role},
                              {"address", address},           Log::optional("tls_name", tls_name),
                              {"session", event.session}};
  switch (event.what) {
    case AuditEvent::What::ran:
      return log_admin_command(event, address, tls_name);
    case AuditEvent::What::denied:
    case AuditEvent::What::hidden:
      service_.counters().count(stats::Counter::denied);
      return log_.limited(Log::Level::warning, service_.tick_time(), "denied", fields);
    case AuditEvent::What::unauthorized:
      service_.counters().count(stats::Counter::unauthorized);
      return log_.limited(Log::Level::warning, service_.tick_time(), "unauthorized", fields);
    case AuditEvent::What::role_full:
      return log_.limited(Log::Level::warning, service_.tick_time(), "role is full", fields);
  }
}

void Authenticator::log_admin_command(const AuditEvent& event, const std::string& address,
                                      const std::string& tls_name) {
  service_.counters().count(stats::Counter::admin_command);
  const Time now = service_.tick_time();
  if (now - audit_second_ >= std::chrono::seconds(1)) {
    end_audit_second();
    audit_second_ = now;
    audited_ = 0;
  }
  if (audited_ >= kAuditPerSecond && !TUBED_PLANTED(audit_without_bound)) {
    if (left_out_++ == 0) audit_timer_.arm(audit_second_ + std::chrono::seconds(1) - now);
    return;
  }
  ++audited_;
  const auto number = [](std::string_view key, const std::optional<std::uint64_t>& value) {
    return Log::Field(value ? key : std::string_view(), value.value_or(0));
  };
  log_.info("admin command", {{"command", event.command},
                              {"tube", event.tube},
                              Log::optional("to", event.to),
                              number("job", event.job),
                              {"reply", event.reply.empty() ? "unfinished" : event.reply},
                              number("jobs", event.jobs),
                              {"principal", event.principal},
                              {"role", event.role},
                              {"address", address},
                              Log::optional("tls_name", tls_name),
                              {"session", event.session}});
}

void Authenticator::end_audit_second() {
  if (left_out_ == 0) return;
  log_.warning("admin commands left out of the log", {{"count", std::exchange(left_out_, 0)}});
}

}  // namespace tubed::access
