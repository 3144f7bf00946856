#include "tubectl/server.h"

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "client/address.h"
#include "client/system_error.h"
#include "client/tls.h"
#include "tubectl/commands/command.h"
#include "tubectl/exit_codes.h"
#include "tubectl/token.h"

namespace tubed::tubectl {
namespace {

// The addresses, with the option --tls applied. All or none have TLS.
Result<std::vector<client::Address>> addresses_of(const Server& server) {
  auto addresses = TRY(client::parse_addresses(server.text));
  for (client::Address& address : addresses) address.tls = address.tls || server.tls;
  return addresses;
}

// TUBED_CA is used by connections with TLS and ignored by others.
bool is_from_environment(const std::string& ca) {
  const char* const value = std::getenv("TUBED_CA");
  return value != nullptr && ca == value;
}

}  // namespace

Result<void> check(const Server& server) {
  const auto addresses = TRY(addresses_of(server));
  const client::Address& address = addresses.front();
  if (address.tls && address.family == AF_UNIX) {
    return Error{"--tls: a unix socket has no TLS"};
  }
  if (!server.key.empty() && server.certificate.empty()) return Error{"--key needs --cert"};
  if (address.tls) return {};
  using Given = std::pair<std::string_view, bool>;
  for (const auto& [name, given] :
       {Given{"--ca", !server.ca.empty() && !is_from_environment(server.ca)},
        Given{"--cert", !server.certificate.empty()},
        Given{"--server-name", !server.server_name.empty()}}) {
    if (given) {
      return Error{fmt::format("{} needs TLS: use --tls, or an address beanstalks://HOST", name)};
    }
  }
  return {};
}

int prepare(Server& server) {
  auto addresses = addresses_of(server);
  if (!addresses) return fail(kExitUsage, addresses.error().message);
  server.target.addresses = std::move(*addresses);
  if (!server.token_file.empty()) {
    auto token = read_token(server.token_file);
    if (!token) return fail(kExitBadInput, token.error().message);
    server.target.token = std::move(*token);
  }
  if (!server.target.addresses.front().tls) return 0;
  for (const std::string& path : {server.ca, server.certificate, server.key}) {
    if (!path.empty() && ::access(path.c_str(), R_OK) != 0) {
      return fail(kExitIo, client::system_error("cannot read " + path).message);
    }
  }
  auto tls = client::TlsContext::create({.ca = server.ca,
                                         .certificate = server.certificate,
                                         .key = server.key,
                                         .server_name = server.server_name});
  if (!tls) return fail(kExitBadInput, tls.error().message);
  server.target.tls = std::move(*tls);
  return 0;
}

Result<client::Connection> connect(const Server& server, Duration timeout) {
  return client::Connection::open(server.target, timeout);
}

}  // namespace tubed::tubectl
