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

// Files in PEM of a new certificate that has signed itself.
struct TlsFiles {
  std::string certificate;
  std::string key;
};
// Runs openssl(1).
Result<TlsFiles> make_certificate(const std::string& directory);

class TlsStream {
 public:
  // Waits for the handshake, at most until `until`. The caller owns the socket, which outlives the
  // stream. The certificate of the server is not verified. Null: the handshake has failed.
  static std::unique_ptr<TlsStream> open(int fd, std::chrono::steady_clock::time_point until);
  ~TlsStream();

  // As send(2) and recv(2), with errno; an error of TLS is EPROTO.
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
