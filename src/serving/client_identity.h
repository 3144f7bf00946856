// ClientIdentity: the identity of a client that has authenticated.
#pragma once

#include <array>
#include <string>

namespace tubed::serving {

// The SHA-256 of a token.
using TokenHash = std::array<unsigned char, 32>;

// The role of a client, and how it has authenticated.
struct ClientIdentity {
  std::string role;
  std::string name;   // for the log: "token web-1", "certificate CN=mailer", "user www-data"
  TokenHash token{};  // of a client with a token
  friend bool operator==(const ClientIdentity&, const ClientIdentity&) = default;
};

}  // namespace tubed::serving
