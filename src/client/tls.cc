// The only file that includes OpenSSL's headers.
//
// OpenSSL reads and writes through a BIO defined here (socket_bio), because the BIO of OpenSSL
// calls write(2), which raises SIGPIPE. The BIO also records the last error or the end of the
// socket and the first byte that the server has sent; error messages are made from these, since an
// OpenSSL error code describes a failed step, but a user needs the cause.
//
// Every call of OpenSSL that can fail starts with an empty error queue; each thread has its own.
// OPENSSL_INIT_NO_ATEXIT: a thread that is still connecting at the end of the program must not lose
// the library.
//
// receive() repeats until OpenSSL has no more input or the buffer is full, because the owner waits
// for the socket, which does not show what OpenSSL has read ahead. An error after some input is
// kept for the next call.
#include "client/tls.h"

#include <array>
#include <cerrno>
#include <ctime>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/time.h"
#include "client/event_loop.h"
#include "client/system_error.h"
#include "os/descriptor.h"
#include "text/host.h"

namespace tubed::client {
namespace {

// The wire form of the list of protocols, for ALPN. The second has the name CR LF, which a server
// with TLS does not have and ignores. [RFC 7301, 3.2] For a beanstalk server without TLS it is a
// line end: the server answers the first message of the handshake immediately, instead of waiting
// for a line end until the timeout.
constexpr std::array<unsigned char, 13> kProtocols{9,   'b', 'e', 'a', 'n',  's', 't',
                                                   'a', 'l', 'k', 2,   '\r', '\n'};

// The types of the records that a server may send first.
constexpr unsigned char kAlertRecord = 21;
constexpr unsigned char kHandshakeRecord = 22;

struct Socket {
  int number = -1;
  int error = 0;       // errno of the last failure
  bool ended = false;  // the server has closed its side
  std::optional<unsigned char> first;
};

Socket& socket_of(BIO* bio) {
  return *static_cast<Socket*>(BIO_get_data(bio));
}

bool try_again() {
  return errno == EAGAIN || errno == EINTR;
}

int write_socket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  Socket& socket = socket_of(bio);
  const ssize_t done = ::send(socket.number, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (done >= 0) return static_cast<int>(done);
  if (try_again()) {
    BIO_set_retry_write(bio);
  } else {
    socket.error = errno;
  }
  return -1;
}

int read_socket(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  Socket& socket = socket_of(bio);
  const ssize_t got = ::recv(socket.number, bytes, static_cast<std::size_t>(size), 0);
  if (got > 0) {
    if (!socket.first) socket.first = static_cast<unsigned char>(bytes[0]);
    return static_cast<int>(got);
  }
  if (got == 0) {
    socket.ended = true;
    return 0;
  }
  if (try_again()) {
    BIO_set_retry_read(bio);
  } else {
    socket.error = errno;
  }
  return -1;
}

long control_socket(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return socket_of(bio).ended ? 1 : 0;
  return 0;
}

BIO_METHOD* socket_method() {
  static BIO_METHOD* const kMethod = [] {
    BIO_METHOD* const method =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE");
    TUBED_ASSERT(method != nullptr);
    BIO_meth_set_write(method, write_socket);
    BIO_meth_set_read(method, read_socket);
    BIO_meth_set_ctrl(method, control_socket);
    return method;
  }();
  return kMethod;
}

// The text of the oldest entry of the queue, which is the cause of the others. Empties the queue.
std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown";
  if (ERR_SYSTEM_ERROR(code)) return os::error_text(ERR_GET_REASON(code));
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : fmt::format("error {:#x}", code);
}

Error bad_file(std::string_view what, const std::string& path) {
  std::string reason = openssl_reason();
  if (reason == "no start line" || reason == "unsupported" ||
      reason == "no certificate or crl found") {
    reason = "it has none in PEM";
  }
  return {fmt::format("cannot read the {} in {}: {}", what, path, reason)};
}

std::string date_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return "at an unknown time";
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

// Why a server's certificate is refused; SSL_get_app_data() points to it.
struct Trust {
  std::string server;         // "HOST:PORT"
  std::string expected_name;  // for which the certificate must be valid
  std::optional<std::string> refusal;
};

std::string refusal_of(X509_STORE_CTX* store, const Trust& trust) {
  const X509* const certificate = X509_STORE_CTX_get_current_cert(store);
  const bool is_server = X509_STORE_CTX_get_error_depth(store) == 0;
  const std::string subject = is_server ? fmt::format("the certificate of {}", trust.server)
                                        : fmt::format("a CA's certificate of {}", trust.server);
  const int error = X509_STORE_CTX_get_error(store);
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("{} has expired ({})", subject, date_of(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("{} is not valid yet (from {})", subject,
                         date_of(X509_get0_notBefore(certificate)));
    case X509_V_ERR_HOSTNAME_MISMATCH:
      return fmt::format("{} is not for the name {}", subject, trust.expected_name);
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("{} is not for the address {}", subject, trust.expected_name);
    case X509_V_ERR_INVALID_PURPOSE:
      return fmt::format("{} is not for a server", subject);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return fmt::format("the certificate of {} is not signed by a trusted CA", trust.server);
    default:
      return fmt::format("{} is refused: {}", subject, X509_verify_cert_error_string(error));
  }
}

// Called for each accepted certificate, and for the first fault.
int verify(int accepted, X509_STORE_CTX* store) {
  if (accepted == 1) return 1;
  const auto* const ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* const trust = static_cast<Trust*>(SSL_get_app_data(ssl));
  trust->refusal = refusal_of(store, *trust);
  return 0;
}

// Sets the name or IP address for which the certificate must be valid. A name is also sent, for the
// server to choose a certificate; this is SSL_set_tlsext_host_name() without its cast.
bool expect_name(SSL* ssl, const std::string& name) {
  X509_VERIFY_PARAM* const parameters = SSL_get0_param(ssl);
  if (parse_host(name)) {
    return X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str()) == 1;
  }
  X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return X509_VERIFY_PARAM_set1_host(parameters, name.c_str(), name.size()) == 1 &&
         SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  const_cast<char*>(name.c_str())) == 1;
}

// The server has ended the connection with this alert. With TLS 1.3 it can refuse the client's
// certificate only after the client's side of the handshake is done.
std::string meaning_of_alert(int reason, bool has_certificate) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "the server requires a client certificate: use --cert";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      if (!has_certificate) {
        return "the server refuses the TLS handshake; it may require a client certificate (--cert)";
      }
      return "the server refuses the TLS handshake";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the server does not trust the CA of the client certificate";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the server refuses the client certificate: it has expired";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      return "the server refuses the client certificate: it is revoked";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return "the server refuses the client certificate";
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
      return "the server does not speak TLS 1.2 or later";
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
      return "the server does not offer the protocol beanstalk over TLS (ALPN)";
    case SSL_R_TLSV1_UNRECOGNIZED_NAME:
      return "the server has no certificate for that name: use --server-name";
    default:
      return "";
  }
}

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::create(const Settings& settings) {
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  ERR_clear_error();
  const auto created = std::make_shared<TlsContext>();
  created->server_name_ = settings.server_name;
  created->has_certificate_ = !settings.certificate.empty();
  created->context_.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const context = created->context_.get();
  if (context == nullptr) return Error{fmt::format("no TLS: {}", openssl_reason())};
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_protos(context, kProtocols.data(), kProtocols.size());
  // Refuses a key with a passphrase, because OpenSSL would ask for it on the terminal.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });
  if (settings.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_file(context, settings.ca.c_str()) != 1) {
    return bad_file("CA certificates", settings.ca);
  } else {
    // Each certificate of the file ends a chain, even an intermediate certificate.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  }
  if (settings.certificate.empty()) return std::shared_ptr<const TlsContext>(created);
  const std::string& key = settings.key.empty() ? settings.certificate : settings.key;
  if (SSL_CTX_use_certificate_chain_file(context, settings.certificate.c_str()) != 1) {
    return bad_file("certificate", settings.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH) {
      ERR_clear_error();
      return Error{fmt::format("the key in {} is not that of the certificate in {}", key,
                               settings.certificate)};
    }
    return bad_file("key", key);
  }
  return std::shared_ptr<const TlsContext>(created);
}

struct TlsStream::State {
  struct Free {
    void operator()(SSL* stream) const { SSL_free(stream); }
  };

  Result<void> handshake(Duration timeout);
  // Makes the error of a call of OpenSSL that has failed for good. `kind` is the result of
  // SSL_get_error().
  Error failure(int kind);

  Socket socket;  // the BIO of `ssl` refers to it
  Trust trust;    // `ssl` refers to it
  std::unique_ptr<SSL, Free> ssl;
  bool has_certificate = false;
  bool established = false;
  bool failed = false;        // nothing can be sent, not even the end of TLS
  bool more_input = false;    // [has_input]
  bool answer_waits = false;  // [wants_room]
  std::optional<Error> late;  // for the next receive()
};

Error TlsStream::State::failure(int kind) {
  failed = true;
  if (trust.refusal) return {*trust.refusal};
  const bool is_tls =
      socket.first && (*socket.first == kHandshakeRecord || *socket.first == kAlertRecord);
  if (!established && socket.first && !is_tls) return {"the server does not speak TLS"};
  if (kind == SSL_ERROR_ZERO_RETURN) return {"the server closed a connection"};
  // Checked first, because OpenSSL then tries to send an alert, which may fail.
  if (socket.ended) {
    return {established ? "the server closed a connection without the end of TLS"
                        : "the server closed the connection during the TLS handshake"};
  }
  if (socket.error != 0) {
    errno = socket.error;
    return system_error(established ? "the connection is lost" : "no TLS");
  }
  const int reason = ERR_GET_REASON(ERR_peek_error());
  if (const std::string meaning = meaning_of_alert(reason, has_certificate); !meaning.empty()) {
    ERR_clear_error();
    return {meaning};
  }
  return {fmt::format("TLS failed: {}", openssl_reason())};
}

Result<void> TlsStream::State::handshake(Duration timeout) {
  const TimePoint end = Clock::now() + timeout;
  for (;;) {
    ERR_clear_error();
    const int done = SSL_connect(ssl.get());
    if (done == 1) break;
    const int kind = SSL_get_error(ssl.get(), done);
    if (kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE) return failure(kind);
    const short events = kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    const bool ready = TRY(wait_for(socket.number, events, end - Clock::now()));
    if (!ready) {
      failed = true;
      return Error{fmt::format("the server did not finish the TLS handshake within {} s",
                               std::chrono::duration_cast<std::chrono::seconds>(timeout).count())};
    }
  }
  established = true;
  more_input = SSL_has_pending(ssl.get()) == 1;  // bytes that arrived with the end of the handshake
  return {};
}

TlsStream::TlsStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsStream::TlsStream(TlsStream&&) noexcept = default;
TlsStream& TlsStream::operator=(TlsStream&&) noexcept = default;

TlsStream::~TlsStream() {
  if (state_ == nullptr || !state_->established || state_->failed) return;
  ERR_clear_error();
  SSL_shutdown(state_->ssl.get());
  ERR_clear_error();
}

Result<TlsStream> TlsStream::open(const TlsContext& context, const Address& server, int socket,
                                  Duration timeout) {
  ERR_clear_error();
  auto state = std::make_unique<State>();
  state->socket.number = socket;
  Address plain = server;
  plain.tls = false;
  state->trust.server = to_string(plain);
  state->trust.expected_name =
      context.server_name_.empty() ? host_name(server) : context.server_name_;
  state->has_certificate = context.has_certificate_;
  state->ssl.reset(SSL_new(context.context_.get()));
  BIO* const bio = BIO_new(socket_method());
  SSL* const ssl = state->ssl.get();
  if (ssl == nullptr || bio == nullptr) return Error{fmt::format("no TLS: {}", openssl_reason())};
  BIO_set_data(bio, &state->socket);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);  // now owned by `ssl`
  SSL_set_app_data(ssl, &state->trust);
  SSL_set_verify(ssl, SSL_VERIFY_PEER, verify);
  if (!expect_name(ssl, state->trust.expected_name)) {
    return Error{fmt::format("\"{}\" is no name of a TLS server", state->trust.expected_name)};
  }
  TRY(state->handshake(timeout));
  return TlsStream(std::move(state));
}

Result<std::size_t> TlsStream::send_some(std::string_view bytes) {
  std::size_t accepted = 0;
  while (accepted < bytes.size()) {
    std::size_t done = 0;
    ERR_clear_error();
    const int ok =
        SSL_write_ex(state_->ssl.get(), bytes.data() + accepted, bytes.size() - accepted, &done);
    accepted += done;
    if (ok == 1) continue;
    const int kind = SSL_get_error(state_->ssl.get(), ok);
    // OpenSSL waits for input only during a handshake, so never after open().
    if (kind == SSL_ERROR_WANT_WRITE || kind == SSL_ERROR_WANT_READ) break;
    const Error failure = state_->failure(kind);
    // The server may have sent the reason before it closed.
    std::array<char, 1> rest{};
    state_->late.reset();
    state_->socket.error = 0;
    const auto received = receive(rest);
    if (!received && !state_->socket.ended && state_->socket.error == 0) return received.error();
    return failure;
  }
  return accepted;
}

Result<std::string_view> TlsStream::receive(std::span<char> buffer) {
  state_->more_input = false;
  if (state_->late) return *state_->late;
  SSL* const ssl = state_->ssl.get();
  std::size_t got = 0;
  while (got < buffer.size()) {
    std::size_t done = 0;
    ERR_clear_error();
    const int ok = SSL_read_ex(ssl, buffer.data() + got, buffer.size() - got, &done);
    if (ok != 1) {
      const int kind = SSL_get_error(ssl, ok);
      state_->answer_waits = kind == SSL_ERROR_WANT_WRITE;
      if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) break;
      state_->late = state_->failure(kind);
      if (got == 0) return *state_->late;
      state_->more_input = true;
      break;
    }
    got += done;
    if (SSL_has_pending(ssl) == 0) break;
    // At least a part of a record is left.
    state_->more_input = got == buffer.size();
  }
  return std::string_view(buffer.data(), got);
}

bool TlsStream::has_input() const {
  return state_->more_input;
}

bool TlsStream::wants_room() const {
  return state_->answer_waits;
}

void TlsStream::room_came() {
  if (!std::exchange(state_->answer_waits, false)) return;
  state_->more_input = true;
}

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  TUBED_ASSERT(done == 1 && size == 32);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace tubed::client
