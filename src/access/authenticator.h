// Authenticator: finds the role of each client, refuses clients without a role, and logs failed
// attempts, denials, and the commands of administrators (the audit).
//
// A client gets its role when its connection is accepted (the role of the listener, a certificate,
// a user) or by a token. A wrong token is refused after a delay, which grows with the failures of
// its address: attempts cost time. A right token is never delayed. The log never contains a token
// or a body.
//
// Each command of an administrator is logged, up to kAuditPerSecond in a second. A line at the end
// of the second has the number of the others. The metric counts all.
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

  // Applies settings and files. Conversations keep their roles, with the current rights of these. A
  // client is closed if its role was removed, or if no token, certificate or user gives it its
  // role; a client that awaits the answer to `reload` gets the answer first. O(clients * roles).
  void apply(const std::vector<RoleSettings>& roles, Identities identities);

  // The admission of a connection, and its identity if it is known.
  struct Admitted {
    commands::Admission admission;
    std::optional<serving::ClientIdentity> identity;
  };
  // Returns no value if the client has no role or its role is full: it was sent the reply, and is
  // to be closed.
  std::optional<Admitted> admit(loop::Channel& channel, const serving::ConnectionOrigin& origin);

  // The admission of a request over HTTP. Its role may be full: then no conversation may begin.
  // `token`: of the request, if it has a token.
  struct Refusal {
    Duration delay{};  // until the answer; above zero if the token is wrong
  };
  std::variant<Admitted, Refusal> admit(const loop::HttpPeer& peer, const HttpApiSettings& http,
                                        std::optional<std::string_view> token);
  // Returns the answer to the token of a conversation. Does not keep the token.
  commands::Authentication authenticate(std::string_view token, SessionId session);
  // Logs the decision about a command. Of commands that have run, at most kAuditPerSecond are
  // logged.
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
  void log_admin_command(const commands::AuditEvent& event, const std::string& address,
                         const std::string& tls_name);
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
