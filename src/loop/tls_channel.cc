// OpenSSL has the descriptor, reads ahead and writes records. A read takes records until OpenSSL's
// buffer has no complete record or the caller's buffers are full. A write makes records; it first
// copies pieces smaller than a record together, because each record costs a header, a tag and a
// system call.
//
// After a write that did not fit, OpenSSL requires the same bytes again. [SSL_write(3)] The replies
// of a client are a queue, so the next write begins with the same bytes, possibly followed by more.
#include "loop/tls_channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/assert.h"

namespace tubed::loop {

namespace {

using Kind = os::Transfer::Kind;

constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;

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

// Empty for a name that is not plain text, because it could be displayed as a different name.
std::string text_of(const ASN1_STRING* string) {
  const auto* data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(string));
  std::string text(data, static_cast<std::size_t>(ASN1_STRING_length(string)));
  const bool printable = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
  return printable ? text : std::string();
}

std::vector<std::string> names_of(X509* certificate) {
  std::vector<std::string> result;
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    int type = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
    const char* prefix = type == GEN_DNS     ? "DNS:"
                         : type == GEN_EMAIL ? "email:"
                         : type == GEN_URI   ? "URI:"
                                             : nullptr;
    if (prefix == nullptr) continue;
    const std::string text = text_of(static_cast<const ASN1_STRING*>(value));
    if (!text.empty()) result.push_back(prefix + text);
  }
  GENERAL_NAMES_free(names);
  return result;
}

}  // namespace

void TlsChannel::FreeSsl::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

TlsChannel::TlsChannel(Loop& loop, os::Socket socket, std::shared_ptr<const TlsContext> context,
                       ProxiedClient proxied)
    : PolledSocket(loop, std::move(socket)),
      loop_(loop),
      proxied_(std::move(proxied)),
      context_(std::move(context)),
      ssl_(SSL_new(context_->native())) {
  if (ssl_ == nullptr || SSL_set_fd(ssl_.get(), this->socket().descriptor()) != 1) {
    ssl_.reset();
    ERR_clear_error();
  } else {
    SSL_set_accept_state(ssl_.get());
  }
}

TlsChannel::~TlsChannel() {
  if (established_ && !broken_ && !output_ended_) {
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
}

std::unique_ptr<TlsChannel> TlsChannel::open(Loop& loop, os::Socket socket,
                                             std::shared_ptr<const TlsContext> context,
                                             ProxiedClient proxied) {
  std::unique_ptr<TlsChannel> channel(
      new TlsChannel(loop, std::move(socket), std::move(context), std::move(proxied)));
  if (!channel->is_watched() || channel->ssl_ == nullptr) return nullptr;
  return channel;
}

TlsChannel::Handshake TlsChannel::shake_hands() {
  TUBED_ASSERT(!established_ && !broken_);
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    established_ = true;
    return Handshake::done;
  }
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Handshake::reads;
    case SSL_ERROR_WANT_WRITE:
      return Handshake::writes;
    case SSL_ERROR_SSL: {
      const char* reason = ERR_reason_error_string(ERR_peek_last_error());
      failure_ = reason != nullptr ? reason : "unknown error";
      if (const long verified = SSL_get_verify_result(ssl_.get()); verified != X509_V_OK) {
        failure_ += ": ";
        failure_ += X509_verify_cert_error_string(verified);
      }
      break;
    }
    default:
      failure_ = "the client closed the connection";
      break;
  }
  ERR_clear_error();
  broken_ = true;
  return Handshake::failed;
}

std::string TlsChannel::peer() const {
  return proxied_.address.empty() ? PolledSocket::peer() : proxied_.address;
}

TlsPeer TlsChannel::peer_certificate() const {
  X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  if (certificate == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK) return {};
  return {.subject = subject_of(certificate), .names = names_of(certificate)};
}

// --- Reading and writing

// Returns the kind of a call that has moved nothing.
os::Transfer::Kind TlsChannel::kind_of(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return Kind::would_block;
    case SSL_ERROR_ZERO_RETURN:
      return Kind::end;
    default:
      ERR_clear_error();
      broken_ = true;
      return Kind::failed;
  }
}

os::Transfer::Kind TlsChannel::read_record(std::span<char> buffer, std::size_t& got) {
  if (broken_) return Kind::failed;
  data_follows_ = false;
  const int result = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &got);
  const Kind kind = result == 1 ? Kind::done : kind_of(result);
  starved_ = kind != Kind::done;
  return kind;
}

os::Transfer TlsChannel::read(std::span<char> buffer) {
  return read(std::span<const std::span<char>>(&buffer, 1));
}

os::Transfer TlsChannel::read(std::span<const std::span<char>> buffers) {
  std::size_t total = 0;
  for (std::span<char> buffer : buffers) {
    while (!buffer.empty()) {
      // Only the first read may make a system call; later reads take what has arrived with it.
      if (total > 0 && !has_decrypted()) return {Kind::done, total};
      std::size_t got = 0;
      const Kind kind = read_record(buffer, got);
      if (kind != Kind::done) {
        // The next read reports the end or the failure.
        end_follows_ = total > 0 && kind != Kind::would_block;
        return total > 0 ? os::Transfer{Kind::done, total} : os::Transfer{kind, 0};
      }
      total += got;
      buffer = buffer.subspan(got);
    }
  }
  return {Kind::done, total};
}

os::Transfer::Kind TlsChannel::write_record(std::string_view bytes, std::size_t& sent) {
  if (broken_) return Kind::failed;
  const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent);
  return result == 1 ? Kind::done : kind_of(result);
}

os::Transfer TlsChannel::write(std::string_view piece) {
  return write(std::span<const std::string_view>(&piece, 1));
}

os::Transfer TlsChannel::write(std::span<const std::string_view> pieces) {
  std::array<char, kRecordBytes> copied;
  std::size_t total = 0;
  std::size_t at = 0;      // the next piece
  std::size_t offset = 0;  // within that piece
  while (at < pieces.size()) {
    std::string_view record = pieces[at].substr(offset, kRecordBytes);
    if (record.size() < kRecordBytes && at + 1 < pieces.size()) {
      std::size_t filled = 0;
      std::size_t from = offset;
      for (std::size_t i = at; i < pieces.size() && filled < kRecordBytes; ++i, from = 0) {
        const std::string_view part = pieces[i].substr(from, kRecordBytes - filled);
        part.copy(copied.data() + filled, part.size());
        filled += part.size();
      }
      record = {copied.data(), filled};
    }
    if (record.empty()) break;  // only empty pieces remain
    std::size_t sent = 0;
    const Kind kind = write_record(record, sent);
    if (kind == Kind::failed || kind == Kind::end) return {Kind::failed, total};
    total += sent;
    for (offset += sent; at < pieces.size() && offset >= pieces[at].size(); ++at)
      offset -= pieces[at].size();
    if (sent < record.size()) break;
  }
  return total > 0 ? os::Transfer{Kind::done, total} : os::Transfer{Kind::would_block, 0};
}

// True if a read moves bytes without the kernel. OpenSSL may also have part of a record, which is
// useless until the rest arrives.
bool TlsChannel::has_decrypted() const {
  return !starved_ && SSL_has_pending(ssl_.get()) == 1;
}

bool TlsChannel::has_unread() const {
  return has_decrypted() || os::has_unread(socket());
}

void TlsChannel::end_output() {
  if (!broken_ && !output_ended_) {
    SSL_shutdown(ssl_.get());  // no close_notify if it does not fit into the socket
    ERR_clear_error();
  }
  output_ended_ = true;
  os::end_output(socket());
}

// --- Waiting

void TlsChannel::want(bool readable, bool writable) {
  wants_readable_ = readable;
  wants_writable_ = writable;
  watch(readable || may_find_end(), writable);
  if ((readable || may_find_end()) && (has_decrypted() || end_follows_)) {
    if (decrypted_ == nullptr) {
      decrypted_ = std::make_unique<Timer>(loop_, [this] { on_events({.readable = true}); });
    }
    decrypted_->arm({});
  } else if (decrypted_ != nullptr) {
    decrypted_->disarm();
  }
}

void TlsChannel::on_events(Readiness ready) {
  // The socket may end after TLS has ended; only the first end is reported.
  if (ready.half_closed) ready.half_closed = !std::exchange(end_reported_, true);
  if (ready.readable && !wants_readable_) {
    ready.readable = false;
    if (may_find_end()) look_for_end(ready);
    watch(may_find_end(), wants_writable_);
  }
  if (ready.readable || ready.writable || ready.half_closed || ready.broken) report(ready);
}

bool TlsChannel::may_find_end() const {
  return established_ && !end_reported_ && !data_follows_;
}

// Passes no bytes to the owner.
void TlsChannel::look_for_end(Readiness& ready) {
  if (!end_follows_) {
    char byte = 0;
    std::size_t got = 0;
    const int result = broken_ ? 0 : SSL_peek_ex(ssl_.get(), &byte, 1, &got);
    const Kind kind = broken_ ? Kind::failed : result == 1 ? Kind::done : kind_of(result);
    data_follows_ = kind == Kind::done;
    starved_ = kind != Kind::done;
    end_follows_ = kind == Kind::end || kind == Kind::failed;
  }
  if (!end_follows_) return;
  end_reported_ = true;
  (broken_ ? ready.broken : ready.half_closed) = true;
}

void TlsChannel::pause() {
  PolledSocket::pause();
  if (decrypted_ != nullptr) decrypted_->disarm();
}

}  // namespace tubed::loop
