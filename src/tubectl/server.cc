#include "tubectl/server.h"

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

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

// The address, with the option --tls applied.
Result<client::Address> address_of(const Server& server) {
  auto address = TRY(client::parse_address(server.text));
  address.tls = address.tls || server.tls;
  return address;
}

// TUBED_CA is used by connections with TLS and ignored by others.
bool is_from_environment(const std::string& ca) {
  const char* const value = std::getenv("TUBED_CA");
  return value != nullptr && ca == value;
}

}  // namespace

Result<void> check(const Server& server) {
  const auto address = TRY(address_of(server));
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
  auto address = address_of(server);
  if (!address) return fail(kExitUsage, address.error().message);
  server.target.address = std::move(*address);
  if (!server.token_file.empty()) {
    auto token = read_token(server.token_file);
    if (!token) return fail(kExitBadInput, token.error().message);
    server.target.token = std::move(*token);
  }
  if (!server.target.address.tls) return 0;
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
