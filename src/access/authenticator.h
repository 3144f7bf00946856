// Authenticator: which role each client has, what happens to a client that has none, and the log of
// both: failed attempts, denials, and the commands of administrators (the audit).
//
// A client gets its role when its connection is taken (the listener's role, a certificate, a user)
// or by a token. A wrong token is refused later, and later still the more often its address has
// failed, so that attempts cost time; a right token is never delayed. The log never has a token or
// a body.
//
// Each command of an administrator has a line, up to kAuditPerSecond in a second. The others of
// that second are counted, and a line at its end has their number. The metric counts all.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "access/failed_attempts.h"
#include "access/identities.h"
#include "commands/principal.h"
#include "config/settings.h"
#include "loop/http_request.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "os/log.h"
#include "serving/clients.h"
#include "serving/connection_origin.h"
#include "serving/scheduler.h"

namespace tubed::access {

class Authenticator {
 public:
  // Everything that is passed by reference outlives it.
  Authenticator(loop::Loop& loop, os::Log& log, commands::Service& service,
                serving::Clients& clients, serving::Scheduler& scheduler);
  ~Authenticator();

  static constexpr std::uint32_t kAuditPerSecond = 100;

  // Settings and files in force from now on. Conversations keep their roles, with the rights that
  // these have now; a client whose role was removed, or whom no token, certificate or user gives
  // its role any more, is closed. O(clients * roles).
  void apply(const std::vector<RoleSettings>& roles, Identities identities);

  // The admission of a connection, and its identity if that is known.
  struct Admitted {
    commands::Admission admission;
    std::optional<serving::ClientIdentity> identity;
  };
  // Nothing: the client has no role, or its role is full. It was sent the reply, and is to be
  // closed.
  std::optional<Admitted> admit(loop::Channel& channel, const serving::ConnectionOrigin& origin);

  // The admission of a request over HTTP. Its role may be full: then no conversation may begin.
  // `token`: of the request; nothing: it has none.
  struct Refusal {
    Duration delay{};  // it is to be answered that much later: the token is wrong
  };
  std::variant<Admitted, Refusal> admit(const loop::HttpPeer& peer, const HttpApiSettings& http,
                                        std::optional<std::string_view> token);
  // The answer to the token of a conversation. Does not keep it.
  commands::Authentication authenticate(std::string_view token, SessionId session);
  // Logs the decision about a command: at most kAuditPerSecond of those that have run.
  void audit(const commands::AuditEvent& event);

  // True if the client would have the same role now. O(tokens).
  bool still_has(const serving::ClientIdentity& identity) const {
    return identities_.still_has(identity);
  }

 private:
  std::optional<serving::ClientIdentity> identity_of(const serving::ConnectionOrigin& origin) const;
  Admitted admitted(commands::ActiveRole& role,
                    const std::optional<serving::ClientIdentity>& identity,
                    const std::string& listener) const;
  commands::Authentication refuse_later(SessionId session, const std::string& address);
  void refuse_due();
  void log_admin_command(const commands::AuditEvent& event, const std::string& address);
  void end_audit_second();
  void close_revoked();

  os::Log& log_;
  commands::Service& service_;
  serving::Clients& clients_;
  serving::Scheduler& scheduler_;
  Identities identities_;
  FailedAttempts failed_;
  std::multimap<Time, SessionId> refusals_;  // by their time; a session may have closed since
  loop::Timer refusal_timer_;
  Time audit_second_{};         // when the second of the audit began
  std::uint32_t audited_ = 0;   // lines in it
  std::uint64_t left_out_ = 0;  // commands of it without a line
  loop::Timer audit_timer_;     // armed while left_out_ > 0
};

}  // namespace tubed::access
