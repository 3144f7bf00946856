// Helpers for the tests of TLS: certificates, made when a test needs them, and a client by OpenSSL.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "loop/tls_handshakes.h"
#include "tests/loop/loopback.h"

namespace tubed::loop_test {

struct CertificateFiles {
  std::string certificate;
  std::string key;
};

// A certificate for `name` (also as its alternative name), which has signed itself, with a new key
// of P-256. It is valid from `from` to `until` seconds from now.
CertificateFiles make_certificate(const Directory& directory, const std::string& name,
                                  long from = -60, long until = 3600);

// The client's end of a connection. It works without waiting, as the server's does: each step says
// whether it is done.
class TlsPeerClient {
 public:
  // `version`: of TLS, the highest and the lowest; 0: any.
  explicit TlsPeerClient(os::Socket socket, int version = 0);

  SSL* ssl() { return ssl_.get(); }
  const os::Socket& socket() const { return socket_; }
  void close_socket() { socket_ = os::Socket(); }
  // Presents this certificate.
  void present(const CertificateFiles& files);
  void ask_for(const std::string& server_name);
  void offer(std::string_view alpn);

  // True: the handshake is done. failed(): it goes no further.
  bool shake_hands();
  bool failed() const { return failed_; }
  // Appends what has arrived to input(); true if the stream has ended with close_notify.
  bool receive();
  const std::string& input() const { return input_; }
  // Writes as much as the socket takes, as records of `record` bytes. Returns how many bytes.
  std::size_t send(std::string_view bytes, std::size_t record = 16384);
  // The name of the server's certificate.
  std::string server_name() const;

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  void note(int result);

  os::Socket socket_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  std::string input_;
  bool failed_ = false;
};

}  // namespace tubed::loop_test
