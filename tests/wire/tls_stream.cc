#include "tests/wire/tls_stream.h"

#include <cerrno>
#include <cstdlib>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>

namespace tubed::wire {

Result<TlsFiles> make_certificate(const std::string& directory) {
  const TlsFiles files{directory + "/certificate.pem", directory + "/key.pem"};
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
      "-subj /CN=localhost -keyout '" +
      files.key + "' -out '" + files.certificate + "' 2>/dev/null";
  if (std::system(command.c_str()) != 0) return Error{"failed: " + command};
  return files;
}

void TlsStream::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}
void TlsStream::Free::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

TlsStream::TlsStream(int fd)
    : context_(SSL_CTX_new(TLS_client_method())), ssl_(SSL_new(context_.get())) {
  ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to the socket
  // The server may read between two attempts to write the same bytes.
  SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_set_fd(ssl_.get(), fd);
}

TlsStream::~TlsStream() = default;

std::unique_ptr<TlsStream> TlsStream::open(int fd, std::chrono::steady_clock::time_point until) {
  std::unique_ptr<TlsStream> stream(new TlsStream(fd));
  while (true) {
    const int result = SSL_connect(stream->ssl_.get());
    if (result == 1) return stream;
    const int reason = SSL_get_error(stream->ssl_.get(), result);
    ERR_clear_error();
    const auto left = until - std::chrono::steady_clock::now();
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    if (reason != SSL_ERROR_WANT_READ || wait <= 0) return nullptr;
    pollfd readable{fd, POLLIN, 0};
    ::poll(&readable, 1, static_cast<int>(wait));
  }
}

ssize_t TlsStream::failure_of(int result) {
  const int reason = SSL_get_error(ssl_.get(), result);
  ERR_clear_error();
  if (reason == SSL_ERROR_ZERO_RETURN) return 0;
  errno = reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
  return -1;
}

ssize_t TlsStream::send(std::string_view bytes) {
  std::size_t sent = 0;
  const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent);
  return result == 1 ? static_cast<ssize_t>(sent) : failure_of(result);
}

ssize_t TlsStream::receive(char* bytes, std::size_t size) {
  std::size_t got = 0;
  const int result = SSL_read_ex(ssl_.get(), bytes, size, &got);
  return result == 1 ? static_cast<ssize_t>(got) : failure_of(result);
}

void TlsStream::end_output() {
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

}  // namespace tubed::wire
