// Listeners: the listening sockets of a server, for all protocols: which sockets are inherited,
// opened or replaced, and what a reload changes.
//
// A socket that the service manager has passed on takes the place of the configured listeners of
// its kind: TCP or unix of clients, or HTTP. Inherited sockets are distinguished by name and by
// family, never by position.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "access/access_files.h"
#include "base/result.h"
#include "config/settings.h"
#include "http/admin_http.h"
#include "loop/channel.h"
#include "loop/listener.h"
#include "loop/proxy_headers.h"
#include "loop/tls_handshakes.h"
#include "os/log.h"
#include "os/service_manager.h"
#include "serving/connection_origin.h"
#include "serving/held_connections.h"

namespace tubed::server {

enum class Admittance : std::uint8_t {
  admitted,
  full,        // the connection is refused, with OUT_OF_MEMORY
  not_served,  // the server serves no clients now: the connection is refused
};

// The part of the server that takes the connections of clients.
class ConnectionHost {
 public:
  // Decides what happens to a connection that was just accepted.
  virtual Admittance admits_connection() = 0;
  virtual void on_connection(std::unique_ptr<loop::Channel> channel,
                             const serving::ConnectionOrigin& origin) = 0;
  // `refused` connections were refused for this reason; 0: no connection could be accepted, even to
  // refuse it.
  virtual void on_accept_error(const std::string& reason, std::uint64_t refused) = 0;
  // A connection from `address` was closed before its TLS handshake was done.
  virtual void on_handshake_failed(const std::string& address, std::string_view reason) = 0;
  // A connection from the proxy `address` was closed before its PROXY header was complete.
  virtual void on_header_failed(const std::string& address, std::string_view reason) = 0;
  // A connection was closed because `address` is not a proxy of its listener.
  virtual void on_not_a_proxy(const std::string& address) = 0;

 protected:
  ~ConnectionHost() = default;
};

class Listeners {
 public:
  // Everything that is passed by reference outlives it.
  Listeners(loop::Loop& loop, os::Log& log, ConnectionHost& host, http::AdminHttp& admin_http);
  ~Listeners();

  // Takes the inherited sockets, and opens a socket for each configured listener whose kind was not
  // inherited. An inherited socket at the address of a configured listener gets its TLS,
  // authentication and role; other inherited sockets have no limits, which is logged, or an error
  // as in check(). `tls`: by the index of the settings' listeners. Logs each configured listener
  // that is replaced; a listener that is not plain cannot be replaced. The error is one line that
  // names the address; the sockets opened before are closed. Called once.
  Result<void> open(const Settings& settings, const std::vector<access::TlsPointer>& tls,
                    std::vector<os::InheritedSocket> inherited);

  // Logs the address of each socket. The server begins to serve: a start that is refused after
  // open() has announced nothing.
  void log_listening() const;

  // An error if the settings restrict clients, but not the clients of an inherited socket that
  // other machines can connect to, or if http.auth cannot work on an inherited socket. The settings
  // of a reload are checked before they are applied.
  Result<void> check(const Settings& settings) const;

  // Returns the addresses of the listeners of clients, in order, separated by spaces:
  // "127.0.0.1:37797".
  std::string client_addresses() const;

  // Applies TCP options, TLS, authentication, roles and proxies to later connections.
  void apply(const Settings& settings, const std::vector<access::TlsPointer>& tls);
  void set_handshake_limits(const loop::HandshakeLimits& limits) {
    handshakes_.set_limits(limits);
    headers_.set_limits(limits);
  }
  // Removes from `settings`, the keys that need a restart, addresses that a unit of systemd sets,
  // and logs the command that changes each of them.
  void advise_units(std::vector<std::string>& settings) const;

  // Closes a refused connection a moment later: a client that reconnects at once must not take a
  // processor (HeldConnections). After close_clients() it closes at once.
  void hold(serving::HeldConnections::Connection connection);

  // Accepts no further connection of clients; HTTP is still served. Closes the connections of
  // hold(). Removes the paths of unix sockets that were opened here.
  void close_clients();

 private:
  class ClientListener;
  struct Opened {
    loop::ListenerInfo info;
    std::string address;
  };
  struct Inherited {
    std::string address;
    bool is_http = false;
  };

  void warn_of_open_sockets(const Settings& settings);

  void close_held();

  loop::Loop& loop_;
  os::Log& log_;
  ConnectionHost& host_;
  http::AdminHttp& admin_http_;
  loop::TlsHandshakes handshakes_;
  loop::ProxyHeaders headers_;
  std::vector<std::unique_ptr<ClientListener>> clients_;
  std::vector<Opened> opened_;  // all sockets, HTTP first
  std::vector<Inherited> inherited_;
  serving::HeldConnections held_;
  loop::Timer held_timer_;  // armed while a connection is held
  bool closed_ = false;     // close_clients()
};

}  // namespace tubed::server
