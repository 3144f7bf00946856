// HttpRequest: a request whose header is complete. HttpPeer: the other end of its connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "loop/tls_channel.h"
#include "os/socket.h"

struct MHD_Connection;

namespace tubed::loop {

// The client of a connection, as it was when the connection was opened.
struct HttpPeer {
  std::string address;                         // as os::peer_address() returns it
  TlsPeer certificate = {};                    // empty without TLS or without a client certificate
  std::optional<os::PeerCredentials> process;  // of a unix socket
  bool secured = false;                        // with TLS
};

// A view, valid during the call that receives it.
class HttpRequest {
 public:
  HttpRequest(MHD_Connection* connection, std::string_view method, std::string_view target,
              const HttpPeer& peer)
      : connection_(connection), method_(method), target_(target), peer_(peer) {}

  // Returns the method as sent by the client: methods are case-sensitive.
  std::string_view method() const { return method_; }
  bool is_head() const { return method_ == "HEAD"; }
  // Returns path and query exactly as on the request line. They are still escaped, so an escaped
  // '/' differs from a separator.
  std::string_view target() const { return target_; }
  // Returns the target without its query.
  std::string_view path() const { return target_.substr(0, target_.find('?')); }
  // Returns the value of the first header of this name, in any case. O(headers).
  std::optional<std::string_view> header(std::string_view name) const;
  // Counts the headers of this name. O(headers).
  std::size_t count_headers(std::string_view name) const;
  // Returns the length of the body, 0 without a body, or nothing if the body is chunked.
  std::optional<std::uint64_t> body_bytes() const;
  const HttpPeer& peer() const { return peer_; }

 private:
  MHD_Connection* connection_;
  std::string_view method_;
  std::string_view target_;
  const HttpPeer& peer_;
};

}  // namespace tubed::loop
