// An address is split into host and port, the host is brought to its canonical spelling, and the
// port is read or defaults. As spellings are canonical, clash() and the comparison of settings
// compare strings.
#include "config/listen.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "config/value.h"
#include "text/host.h"
#include "text/numbers.h"

namespace tubed {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::size_t kMaxPathBytes = 107;  // limit of sockaddr_un, without the closing NUL

Result<Listen> parse_unix(std::string_view path) {
  if (path.empty()) return Error{"unix: has no path after it"};
  if (path.size() > kMaxPathBytes) {
    return Error{fmt::format("the path of a unix socket has at most {} bytes, this one {}",
                             kMaxPathBytes, path.size())};
  }
  if (!config::is_plain_text(path)) {
    return Error{"the path has control characters or is not UTF-8"};
  }
  Listen listen;
  listen.kind = Listen::Kind::unix_socket;
  listen.host.clear();
  listen.port = 0;
  listen.path = path;
  return listen;
}

struct HostAndPort {
  HostFamily family = HostFamily::ipv4;
  std::string_view host;
  std::optional<std::string_view> port;
};

// A host without brackets and with two or more colons is an IPv6 address without a port. The views
// point into `address`.
Result<HostAndPort> split(std::string_view address) {
  if (address.starts_with('[')) {
    const auto end = address.find(']');
    if (end == std::string_view::npos) {
      return Error{fmt::format("{}: a ] is missing", config::in_quotes(address))};
    }
    HostAndPort result{HostFamily::ipv6, address.substr(1, end - 1), std::nullopt};
    const auto rest = address.substr(end + 1);
    if (rest.empty()) return result;
    if (!rest.starts_with(':')) {
      return Error{fmt::format("{}: after ] comes nothing or :PORT", config::in_quotes(address))};
    }
    result.port = rest.substr(1);
    return result;
  }
  const auto colon = address.find(':');
  if (colon == std::string_view::npos) return HostAndPort{HostFamily::ipv4, address, std::nullopt};
  if (address.find(':', colon + 1) != std::string_view::npos) {
    return HostAndPort{HostFamily::ipv6, address, std::nullopt};
  }
  return HostAndPort{HostFamily::ipv4, address.substr(0, colon), address.substr(colon + 1)};
}

constexpr auto kPrivateNetworks = std::to_array<std::string_view>(
    {"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16",
     "100.64.0.0/10", "::1/128", "fc00::/7", "fe80::/10"});

}  // namespace

std::string to_string(const Listen& listen) {
  if (listen.kind == Listen::Kind::unix_socket)
    return fmt::format("{}{}", kUnixPrefix, listen.path);
  const bool is_ipv6 = listen.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", listen.host, listen.port)
                 : fmt::format("{}:{}", listen.host, listen.port);
}

Result<std::uint16_t> parse_port(std::string_view text) {
  const auto port = parse_number<std::uint16_t>(text);
  if (!port) return Error{fmt::format("{} is not a port from 0 to 65535", config::in_quotes(text))};
  return *port;
}

Result<Listen> parse_listen(std::string_view address, std::uint16_t port, bool may_be_named) {
  if (address.starts_with(kUnixPrefix)) return parse_unix(address.substr(kUnixPrefix.size()));
  auto parts = TRY(split(address));
  const auto host = parse_host(parts.family, parts.host);
  if (!host && may_be_named) {
    return Error{fmt::format("{} is neither a numeric address nor the name of a host",
                             config::in_quotes(parts.host))};
  }
  if (!host) {
    return Error{fmt::format("{} is not a numeric address; names are not resolved{}",
                             config::in_quotes(parts.host),
                             parts.host == "localhost" ? ": write 127.0.0.1 or [::1]" : "")};
  }
  Listen listen;
  listen.host = to_string(*host);
  listen.port = port;
  if (parts.port) {
    listen.port = TRY(parse_port(*parts.port));
  }
  return listen;
}

std::string to_string(const NamedAddress& address) {
  return fmt::format("{}:{}", address.host, address.port);
}

Result<std::optional<NamedAddress>> parse_named(std::string_view address, std::uint16_t port) {
  const auto colon = address.find(':');
  const auto host = parse_host_name(address.substr(0, colon));
  const bool is_path = address.starts_with(kUnixPrefix);
  if (!host || is_path) return std::optional<NamedAddress>();
  if (colon != std::string_view::npos) port = TRY(parse_port(address.substr(colon + 1)));
  return std::optional(NamedAddress{*host, port});
}

bool is_local(const Listen& listen) {
  return listen.kind == Listen::Kind::unix_socket || listen.host.starts_with("127.") ||
         listen.host == "::1";
}

bool is_private(const Listen& listen) {
  if (listen.kind == Listen::Kind::unix_socket) return true;
  const auto host = parse_host(listen.host);
  return std::ranges::any_of(kPrivateNetworks, [&](std::string_view network) {
    return contains(*parse_network(network), *host);
  });
}

bool is_wildcard(const Listen& listen) {
  if (listen.kind == Listen::Kind::unix_socket) return false;
  const auto address = parse_host(listen.host)->bytes;
  return address == parse_host("::")->bytes || address == parse_host("0.0.0.0")->bytes;
}

bool same_socket(const Listen& one, const Listen& other) {
  return one.kind == other.kind && one.host == other.host && one.port == other.port &&
         one.path == other.path && one.mode == other.mode && one.group == other.group;
}

bool is_plain(const Listen& listen) {
  return !listen.tls.enabled() && listen.auth == AuthMode::none && listen.role.empty() &&
         listen.proxies.empty();
}

std::vector<Network> proxy_networks(const Listen& listen) {
  std::vector<Network> networks;
  if (listen.kind == Listen::Kind::unix_socket) return networks;
  for (const std::string& one : listen.proxies) networks.push_back(*parse_network(one));
  return networks;
}

bool clash(const Listen& one, const Listen& other) {
  if (one.kind != other.kind) return false;
  if (one.kind == Listen::Kind::unix_socket) return one.path == other.path;
  return one.port != 0 && one.port == other.port && one.host == other.host;
}

}  // namespace tubed
