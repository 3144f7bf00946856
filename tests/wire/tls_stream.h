// TlsStream: the client's end of a connection with TLS, on a non-blocking socket.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace tubed::wire {

// PEM files of a new self-signed certificate.
struct TlsFiles {
  std::string certificate;
  std::string key;
};
// Runs openssl(1).
Result<TlsFiles> make_certificate(const std::string& directory);

class TlsStream {
 public:
  // Waits for the handshake until `until` at most. The caller owns the socket, which outlives the
  // stream. The server's certificate is not verified. Returns null if the handshake fails.
  static std::unique_ptr<TlsStream> open(int fd, std::chrono::steady_clock::time_point until);
  ~TlsStream();

  // Like send(2) and recv(2), with errno; a TLS error is EPROTO.
  ssize_t send(std::string_view bytes);
  ssize_t receive(char* bytes, std::size_t size);
  // Sends close_notify. The socket stays open in both directions.
  void end_output();

 private:
  explicit TlsStream(int fd);
  ssize_t failure_of(int result);

  struct Free {
    void operator()(ssl_ctx_st* context) const;
    void operator()(ssl_st* ssl) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
  std::unique_ptr<ssl_st, Free> ssl_;
};

}  // namespace tubed::wire
