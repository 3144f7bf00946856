// Helpers for the tests of TLS: certificates, made when a test needs them, and a client with
// OpenSSL.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "loop/tls_handshakes.h"
#include "tests/loop/loopback.h"

namespace tubed::loop_test {

struct CertificateFiles {
  std::string certificate;
  std::string key;
};

// Makes a self-signed certificate for `name` (also as alternative name) with a new P-256 key. It is
// valid from `from` to `until` seconds from now.
CertificateFiles make_certificate(const Directory& directory, const std::string& name,
                                  long from = -60, long until = 3600);

// An authority of certificates, valid for an hour, with its certificate in `file`.
class TestAuthority {
 public:
  TestAuthority(const Directory& directory, const std::string& name);
  // Makes a certificate for `name`, as make_certificate() does.
  CertificateFiles sign(const std::string& name, long from = -60, long until = 3600) const;

  const std::string file;

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  const Directory& directory_;
  const std::string name_;
  std::unique_ptr<EVP_PKEY, Free> key_;
  std::unique_ptr<X509, Free> certificate_;
};

// The client's end of a connection. Like the server's end it does not wait: each step returns
// whether it is done.
class TlsPeerClient {
 public:
  // `version` is the only version of TLS to offer; 0: any.
  explicit TlsPeerClient(os::Socket socket, int version = 0);

  SSL* ssl() { return ssl_.get(); }
  const os::Socket& socket() const { return socket_; }
  void close_socket() { socket_ = os::Socket(); }
  // Presents this certificate.
  void present(const CertificateFiles& files);
  void ask_for(const std::string& server_name);
  void offer(std::string_view alpn);

  // Returns true when the handshake is done. After a failure, failed() is true.
  bool shake_hands();
  bool failed() const { return failed_; }
  // Appends the bytes that have arrived to input(). Returns true if the stream has ended with
  // close_notify.
  bool receive();
  const std::string& input() const { return input_; }
  // Writes as much as the socket takes, in records of `record` bytes. Returns the number of bytes.
  std::size_t send(std::string_view bytes, std::size_t record = 16384);
  // Returns the name in the server's certificate.
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
