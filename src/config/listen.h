// A listener: one address that clients connect to.
//
// Never opens a socket and never resolves a name: addresses are numeric.
// Invariant: `host` is in the form inet_ntop gives, so equal addresses are equal strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed {

inline constexpr std::uint16_t kDefaultPort = 11300;
inline constexpr std::uint16_t kDefaultHttpPort = 11380;

struct Listen {
  enum class Kind : std::uint8_t { tcp, unix_socket };

  Kind kind = Kind::tcp;
  std::string host = "127.0.0.1";     // tcp: numeric IPv4 or IPv6, without brackets
  std::uint16_t port = kDefaultPort;  // tcp; 0 lets the kernel choose
  std::string path;                   // unix_socket
  std::optional<unsigned> mode;       // unix_socket: permissions; none leaves them to the umask
  std::string group;                  // unix_socket: owning group; empty leaves the process's

  friend bool operator==(const Listen&, const Listen&) = default;
};

// "127.0.0.1:11300", "[::1]:11300" or "unix:/path": what parse_listen() reads.
std::string to_string(const Listen& listen);

// Reads HOST, HOST:PORT, [HOST]:PORT or unix:PATH; `port` is for a host without one.
Result<Listen> parse_listen(std::string_view address, std::uint16_t port = kDefaultPort);

// Reads 0 to 65535.
Result<std::uint16_t> parse_port(std::string_view text);

// True when both cannot be opened at once. Port 0 never clashes.
bool clash(const Listen& one, const Listen& other);

}  // namespace tubed
