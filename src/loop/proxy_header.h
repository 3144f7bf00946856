// The header of the PROXY protocol, versions 1 and 2: what a proxy sends at the beginning of a
// connection to name the client for which it has made the connection.
//
// [https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt]
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::loop {

// The longest headers: a line of version 1, and of version 2 the fixed part with 4 KiB of addresses
// and type-length-value fields.
inline constexpr std::size_t kMaxProxyLine = 107;
inline constexpr std::size_t kMaxProxyHeader = 16 + 4096;

// The client as its proxy reports it.
struct ProxiedClient {
  // As os::peer_address() returns it, or "unix:/path". Empty: the connection is the proxy's own,
  // such as a health check, or has an unknown address.
  std::string address;
  // The common name of the client's certificate, if the proxy has verified it: UTF-8 without
  // control characters. It is shown and logged, and never gives a role.
  std::string tls_name;
};

struct ProxyHeader {
  std::size_t bytes = 0;  // the header's length
  ProxiedClient client;
};

// Reads the header at the beginning of `received`; bytes that follow it are ignored. Returns no
// value if the header is incomplete: then all bytes belong to it. The error is the reason why no
// further bytes could make it a header. At most kMaxProxyHeader bytes decide. O(bytes of the
// header).
Result<std::optional<ProxyHeader>> parse_proxy_header(std::string_view received);

}  // namespace tubed::loop
