// Connection: a connected socket and, if its bytes are encrypted, their TLS session.
//
// A Channel carries it in the loop (channel.h), a BlockingStream in a thread (blocking_stream.h).
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "loop/tls_session.h"
#include "os/socket.h"

namespace tubed::loop {

struct Connection {
  Connection() = default;
  // Without TLS.
  Connection(os::Socket connected) : socket(std::move(connected)) {}  // NOLINT: as a plain one
  Connection(Connection&&) noexcept = default;
  // Ends a session that it had before it gives up that session's socket.
  Connection& operator=(Connection&& other) noexcept {
    tls = std::move(other.tls);
    socket = std::move(other.socket);
    return *this;
  }

  explicit operator bool() const { return static_cast<bool>(socket); }
  // Begins TLS, before any other byte. Returns false if memory is exhausted.
  bool begin_tls(std::shared_ptr<const TlsContext> context, TlsSession::Side side) {
    tls = TlsSession(socket, std::move(context), side);
    return static_cast<bool>(tls);
  }

  // As those of os::Socket; with TLS at most one record. Precondition: the handshake is done.
  os::Transfer read(std::span<char> buffer) {
    if (!tls) return os::read_into(socket, buffer);
    os::Transfer result;
    result.kind = tls.read(buffer, result.bytes);
    return result;
  }
  os::Transfer write(std::string_view piece) {
    if (!tls) return os::write_from(socket, piece);
    os::Transfer result;
    result.kind = tls.write(piece, result.bytes);
    return result;
  }

  os::Socket socket;
  TlsSession tls;  // destroyed before the socket; empty: without TLS
};

}  // namespace tubed::loop
