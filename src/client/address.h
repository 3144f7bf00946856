// Address: where a server listens, and how to connect to it.
//
// A host is an IP address or a name, which connect_to() resolves. "localhost" is always 127.0.0.1.
// Whether a server uses TLS is part of its address; connect_to() only connects.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "base/result.h"
#include "base/time.h"
#include "os/descriptor.h"

namespace tubed::client {

inline constexpr std::uint16_t kDefaultPort = 11300;

struct Address {
  int family = AF_INET;            // AF_INET, AF_INET6, AF_UNIX; AF_UNSPEC for a host name
  std::string host = "127.0.0.1";  // without brackets; the path for AF_UNIX
  std::uint16_t port = kDefaultPort;
  bool tls = false;
  bool is_localhost = false;  // `host` was written as "localhost"
};

// "127.0.0.1:11300", "[::1]:11300" or "unix:/path", as parse_address() accepts it; with TLS
// "beanstalks://127.0.0.1:11300".
std::string to_string(const Address& address);
// The host as it was written, for which the server's certificate must be valid.
std::string host_name(const Address& address);

// Parses HOST, HOST:PORT, [IPV6], [IPV6]:PORT, unix:PATH, unix:@ABSTRACT or an absolute path; also
// beanstalk://HOST:PORT or, with TLS, beanstalks://HOST:PORT, where the port is optional.
Result<Address> parse_address(std::string_view text);
// Parses one such address, or several of hosts, separated by commas. A path may have commas. Either
// all have TLS or none has.
Result<std::vector<Address>> parse_addresses(std::string_view text);

inline constexpr int kTimeoutSeconds = 30;
inline constexpr Duration kTimeout = std::chrono::seconds(kTimeoutSeconds);

// Connects a blocking socket. The timeout applies to the connection attempt to each address of a
// name, and as SO_SNDTIMEO and SO_RCVTIMEO to the socket.
Result<os::Descriptor> connect_to(const Address& address, Duration timeout = kTimeout);
// True if `error` comes from connect_to() and means that no process listens at the address.
bool nothing_listens(const Error& error);

}  // namespace tubed::client
