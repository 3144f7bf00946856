// Listen: one address that the server listens on.
//
// Addresses are numeric: no name is resolved. Nothing here opens a socket.
// Invariant: `host` is in the canonical form of inet_ntop(3), so equal addresses are equal strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/network.h"

namespace tubed {

inline constexpr std::uint16_t kDefaultPort = 11300;
inline constexpr std::uint16_t kDefaultHttpPort = 11380;
inline constexpr std::uint16_t kDefaultClusterPort = 11302;

enum class TlsVersion : std::uint8_t { v1_2, v1_3 };

// The TLS of a listener; it is off without certificates.
struct TlsSettings {
  std::vector<std::string> certificates;  // files
  std::vector<std::string> keys;          // files; empty: each certificate's file has its key too
  std::string client_ca;                  // file; empty: clients present no certificate
  TlsVersion min_version = TlsVersion::v1_2;

  bool enabled() const { return !certificates.empty(); }
  friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
};

// How the clients of a listener show which role they have. In the order of the words in
// config/types.h.
enum class AuthMode : std::uint8_t {
  none,   // each client has the listener's role
  token,  // by the command auth
  mtls,   // by their certificate
  peer,   // by their user or group, on a unix socket
};

struct Listen {
  enum class Kind : std::uint8_t { tcp, unix_socket };

  Kind kind = Kind::tcp;
  std::string host = "127.0.0.1";     // tcp: numeric IPv4 or IPv6, without brackets
  std::uint16_t port = kDefaultPort;  // tcp; 0 lets the kernel choose
  std::string path;                   // unix_socket
  std::optional<unsigned> mode;       // unix_socket: permissions; without, given by the umask
  std::string group;                  // unix_socket: owning group; empty: the group of the process
  TlsSettings tls;
  AuthMode auth = AuthMode::none;
  std::string role;  // of all clients, without authentication; empty: they may do everything
  // The networks of the proxies, or kUnixProxies: each connection comes from one of them and begins
  // with a header of the PROXY protocol. Empty: connections come from clients, without a header.
  std::vector<std::string> proxies;

  friend bool operator==(const Listen&, const Listen&) = default;
};

// "127.0.0.1:11300", "[::1]:11300" or "unix:/path". parse_listen() reads it back.
std::string to_string(const Listen& listen);

// True if both have the same socket; their TLS and authentication may differ. O(1).
bool same_socket(const Listen& one, const Listen& other);
// True if it serves clients as any other listener: without TLS, authentication, role and PROXY
// protocol.
bool is_plain(const Listen& listen);

// Reads HOST, HOST:PORT, [HOST]:PORT or unix:PATH; `port` is for a host without one. With
// `may_be_named`, the error says that parse_named() would accept a name.
Result<Listen> parse_listen(std::string_view address, std::uint16_t port = kDefaultPort,
                            bool may_be_named = false);

// HOST:PORT as other machines know it, whose host may be the name of a host.
struct NamedAddress {
  std::string host;  // as parse_host_name() spells it
  std::uint16_t port = 0;
};
// "a.example:11302".
std::string to_string(const NamedAddress& address);
// Reads NAME or NAME:PORT; `port` is for a name without one. Nothing: the host is no name, but may
// be one for parse_listen(). The error is a wrong port.
Result<std::optional<NamedAddress>> parse_named(std::string_view address, std::uint16_t port);

// Reads 0 to 65535.
Result<std::uint16_t> parse_port(std::string_view text);

// In Listen::proxies of a unix socket: the processes that can connect.
inline constexpr std::string_view kUnixProxies = "unix";
// Returns the networks of Listen::proxies; none for a unix socket. Precondition: of
// load_settings(). O(networks).
std::vector<Network> proxy_networks(const Listen& listen);

// True if no other machine can connect to it: 127.0.0.0/8, ::1 or a unix socket. O(1).
bool is_local(const Listen& listen);

// True for a unix socket and for an address of loopback or of a private or link-local network:
// 127.0.0.0/8, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 169.254.0.0/16, 100.64.0.0/10, ::1,
// fc00::/7, fe80::/10. False for 0.0.0.0 and ::. O(1).
bool is_private(const Listen& listen);

// True for 0.0.0.0 and ::, which are all addresses of the machine.
bool is_wildcard(const Listen& listen);

// True if the kernel would refuse to open both. Port 0 never clashes. Addresses such as 0.0.0.0 and
// 127.0.0.1 with the same port are not detected.
bool clash(const Listen& one, const Listen& other);

}  // namespace tubed
