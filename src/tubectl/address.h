// Address: where the server is.
//
// A host is numeric or a name, which connect_to() resolves; "localhost" is 127.0.0.1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sys/socket.h>

#include "base/result.h"
#include "os/descriptor.h"

namespace tubed::tubectl {

inline constexpr std::uint16_t kDefaultPort = 11300;

struct Address {
  int family = AF_INET;            // or AF_INET6, AF_UNIX, or AF_UNSPEC of a name
  std::string host = "127.0.0.1";  // without brackets; of AF_UNIX the path
  std::uint16_t port = kDefaultPort;
};

// "127.0.0.1:11300", "[::1]:11300" or "unix:/path": what parse_address() reads.
std::string to_string(const Address& address);

// Reads HOST, HOST:PORT, [IPV6], [IPV6]:PORT, unix:PATH or an absolute path.
Result<Address> parse_address(std::string_view text);

// A socket that blocks, but gives up after so long: to connect, to send and to receive.
inline constexpr int kPatienceSeconds = 30;
Result<os::Descriptor> connect_to(const Address& address, int patience_seconds = kPatienceSeconds);
// True if connect_to() failed because nothing listens there.
bool nothing_listens(const Error& error);

}  // namespace tubed::tubectl
