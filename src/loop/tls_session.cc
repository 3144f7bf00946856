#include "loop/tls_session.h"

#include <algorithm>
#include <array>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include "base/assert.h"

namespace tubed::loop {

namespace {

using Kind = os::Transfer::Kind;

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<std::size_t>(std::max(bytes, 0L)));
}

std::string subject_of(X509* certificate) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
  if (bio == nullptr) return {};
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  return text_of(bio.get());
}

// RFC 9266, section 2.
std::string binding_of(SSL* ssl) {
  constexpr std::string_view kLabel = "EXPORTER-Channel-Binding";
  std::array<unsigned char, 32> bytes{};
  TUBED_ASSERT(SSL_export_keying_material(ssl, bytes.data(), bytes.size(), kLabel.data(),
                                          kLabel.size(), nullptr, 0, 0) == 1);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void TlsSession::FreeSsl::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

TlsSession::TlsSession(const os::Socket& socket, std::shared_ptr<const TlsContext> context,
                       Side side)
    : context_(std::move(context)), ssl_(SSL_new(context_->native())), side_(side) {
  if (ssl_ == nullptr || SSL_set_fd(ssl_.get(), socket.descriptor()) != 1) {
    ssl_.reset();
    ERR_clear_error();
  } else if (side == Side::server) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

TlsSession::~TlsSession() {
  if (ssl_ != nullptr && established_) end_output();
}

TlsSession& TlsSession::operator=(TlsSession&& other) noexcept {
  if (ssl_ != nullptr && established_) end_output();
  context_ = std::move(other.context_);
  ssl_ = std::move(other.ssl_);
  failure_ = std::move(other.failure_);
  side_ = other.side_;
  established_ = other.established_;
  output_ended_ = other.output_ended_;
  starved_ = other.starved_;
  broken_ = other.broken_;
  return *this;
}

// --- The handshake

// A record of the handshake begins with 22, 3 and at most 4, as far as it has arrived. Only the
// length of a frame of more than 64 KiB has such bytes, and no node begins with one.
bool TlsSession::begins_with_tls() const {
  std::array<unsigned char, 3> first{};
  const ssize_t got = ::recv(SSL_get_fd(ssl_.get()), first.data(), first.size(), MSG_PEEK);
  if (got >= 1 && first[0] != SSL3_RT_HANDSHAKE) return false;
  if (got >= 2 && first[1] != SSL3_VERSION_MAJOR) return false;
  return got < 3 || (first[2] >= 1 && first[2] <= 4);
}

TlsSession::Handshake TlsSession::shake_hands() {
  TUBED_ASSERT(!established_ && !broken_);
  SSL* const ssl = ssl_.get();
  const bool bounded = context_->is_mutual();
  if (bounded && side_ == Side::server && BIO_number_read(SSL_get_rbio(ssl)) == 0 &&
      !begins_with_tls()) {
    failure_ = kNoTls;
    broken_ = true;
    return Handshake::failed;
  }
  const int result = SSL_do_handshake(ssl);
  const int error = SSL_get_error(ssl, result);
  starved_ = error == SSL_ERROR_WANT_READ;
  if (result == 1) {
    established_ = true;
    return Handshake::done;
  }
  const bool goes_on = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  if (goes_on && (!bounded || BIO_number_read(SSL_get_rbio(ssl)) <= kMostMutualHandshake))
    return error == SSL_ERROR_WANT_READ ? Handshake::reads : Handshake::writes;
  if (goes_on) {
    failure_ = "the handshake is too long";
  } else if (error == SSL_ERROR_SSL) {
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    failure_ = reason != nullptr ? reason : "unknown error";
    if (const long verified = SSL_get_verify_result(ssl); verified != X509_V_OK) {
      failure_ += ": ";
      failure_ += X509_verify_cert_error_string(verified);
    }
  } else {
    failure_ = side_ == Side::server ? kClosedByClient : kClosedByServer;
  }
  ERR_clear_error();
  broken_ = true;
  return Handshake::failed;
}

TlsPeer TlsSession::peer() const {
  TlsPeer peer;
  if (context_->is_mutual()) peer.binding = binding_of(ssl_.get());
  X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  if (certificate == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK) return peer;
  peer.subject = subject_of(certificate);
  peer.names = alternative_names(*certificate);
  return peer;
}

// --- Reading and writing

// Returns the kind of a call that has moved nothing.
Kind TlsSession::kind_of(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return Kind::would_block;
    case SSL_ERROR_ZERO_RETURN:
      return Kind::end;
    case SSL_ERROR_SSL:
      if (const char* reason = ERR_reason_error_string(ERR_peek_last_error()); reason != nullptr)
        failure_ = reason;
      [[fallthrough]];
    default:
      ERR_clear_error();
      broken_ = true;
      return Kind::failed;
  }
}

Kind TlsSession::read(std::span<char> buffer, std::size_t& bytes) {
  if (broken_) return Kind::failed;
  const int result = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &bytes);
  const Kind kind = result == 1 ? Kind::done : kind_of(result);
  starved_ = kind != Kind::done;
  return kind;
}

Kind TlsSession::write(std::string_view piece, std::size_t& bytes) {
  if (broken_) return Kind::failed;
  const int result = SSL_write_ex(ssl_.get(), piece.data(), piece.size(), &bytes);
  return result == 1 ? Kind::done : kind_of(result);
}

Kind TlsSession::peek() {
  if (broken_) return Kind::failed;
  char byte = 0;
  std::size_t got = 0;
  const int result = SSL_peek_ex(ssl_.get(), &byte, 1, &got);
  const Kind kind = result == 1 ? Kind::done : kind_of(result);
  starved_ = kind != Kind::done;
  return kind;
}

// OpenSSL may also have part of a record, which is useless until the rest arrives.
bool TlsSession::has_decrypted() const {
  return !starved_ && SSL_has_pending(ssl_.get()) == 1;
}

bool TlsSession::waits_to_write() const {
  return SSL_want_write(ssl_.get());
}

void TlsSession::end_output() {
  if (!broken_ && !output_ended_) {
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  output_ended_ = true;
}

}  // namespace tubed::loop
