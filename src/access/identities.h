// Identities: finds the role of a client by its token, its certificate or its user.
//
// Made from the roles of the settings and the file of tokens, and replaced as a whole by a reload.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/tokens.h"
#include "base/result.h"
#include "config/settings.h"
#include "loop/tls_channel.h"
#include "os/socket.h"
#include "serving/client_identity.h"

namespace tubed::access {

class Identities {
 public:
  Identities() = default;
  // Reads the file of tokens and looks up users and groups. A user or group that is in two roles,
  // by its name or its number, and a subject that no certificate can have are errors. The error is
  // one line.
  static Result<Identities> load(const Settings& settings);

  // Returns no value if the token has no role. O(tokens), in a time that does not depend on them.
  std::optional<serving::ClientIdentity> of_token(std::string_view token) const;
  // By the alternative names in their order, and then by the subject. O(names * log roles).
  std::optional<serving::ClientIdentity> of_certificate(const loop::TlsPeer& certificate) const;
  // By the user, else by its groups. Returns no value if its groups are in several roles.
  std::optional<serving::ClientIdentity> of_process(const os::PeerCredentials& process) const;
  // True if the same client would have the same role now. O(tokens).
  bool still_has(const serving::ClientIdentity& identity) const;

  // True if the file of tokens has the same tokens.
  bool has_tokens_of(const Identities& other) const { return tokens_ == other.tokens_; }

  // Warnings: one line for each token that no role names.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  using Roles = std::map<std::string, std::string, std::less<>>;  // role by name

  Result<void> load_tokens(const Settings& settings);

  std::vector<Token> tokens_;
  Roles by_token_;  // by the name of the token
  Roles by_subject_;
  std::map<std::uint32_t, serving::ClientIdentity> by_user_;
  std::map<std::uint32_t, serving::ClientIdentity> by_group_;
  std::vector<std::string> complaints_;
};

}  // namespace tubed::access
