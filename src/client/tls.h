// TLS of a client, by OpenSSL: the certificates that a program trusts and presents (TlsContext),
// and the TLS of one connection (TlsStream). Also SHA-256, because only one file includes OpenSSL's
// headers.
//
// A TlsStream is used below a Transport and never waits after the handshake. Each call does as much
// as the socket permits. Three things differ from a plain socket, and the owner must handle two of
// them:
//
// 1. OpenSSL reads whole records and more, so input can be here while the socket is empty. The
//    owner calls receive() again while has_input() is true, before it waits for the socket.
// 2. The peer can request an answer of TLS itself (a key update). While wants_room() is true, the
//    answer waits for room in the socket's send buffer; when it has room, the owner calls
//    room_came() and then receive().
// 3. A send that was accepted in part must be repeated with the same bytes; Transport does so.
//
// The server's certificate is always verified: its chain, its dates, and that it is valid for the
// name or the IP address of the server. The minimum version is TLS 1.2.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/address.h"

struct ssl_ctx_st;

namespace tubed::client {

// Shared by all connections of a program, and by its threads. Immutable.
class TlsContext {
 public:
  // Paths of PEM files; empty: the option was not given.
  struct Settings {
    std::string ca;           // the trusted CAs; empty: the system's
    std::string certificate;  // of the client, with its chain
    std::string key;          // empty: in the file of the certificate
    std::string server_name;  // to verify, and to send as SNI; empty: the host of the address
  };

  // An Error names the file that cannot be used, and the reason.
  static Result<std::shared_ptr<const TlsContext>> create(const Settings& settings);

 private:
  friend class TlsStream;
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };

  std::unique_ptr<ssl_ctx_st, Free> context_;
  std::string server_name_;
  bool has_certificate_ = false;
};

class TlsStream {
 public:
  // Performs the handshake on a connected non-blocking socket, within `timeout`. The caller keeps
  // the socket, which must outlive the stream. The Error explains in one line why TLS failed.
  static Result<TlsStream> open(const TlsContext& context, const Address& server, int socket,
                                std::chrono::nanoseconds timeout);
  TlsStream(TlsStream&&) noexcept;
  TlsStream& operator=(TlsStream&&) noexcept;
  // Sends the regular end of TLS if the socket has room, without waiting.
  ~TlsStream();

  // Returns the number of bytes accepted, possibly 0. The next call must start with the remaining
  // bytes.
  Result<std::size_t> send_some(std::string_view bytes);
  // Fills `buffer` with the available input. Empty: no input is available now.
  Result<std::string_view> receive(std::span<char> buffer);

  bool has_input() const;
  bool wants_room() const;
  void room_came();

 private:
  struct State;
  explicit TlsStream(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// 64 hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace tubed::client
