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
#include <utility>

#include <openssl/ssl.h>

#include "base/assert.h"

namespace tubed::loop {

namespace {

using Kind = os::Transfer::Kind;

constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;

}  // namespace

TlsChannel::TlsChannel(Loop& loop, Connection connection, ProxiedClient proxied)
    : PolledSocket(loop, std::move(connection.socket)),
      loop_(loop),
      proxied_(std::move(proxied)),
      session_(std::move(connection.tls)) {}

std::unique_ptr<TlsChannel> TlsChannel::open(Loop& loop, Connection connection,
                                             ProxiedClient proxied) {
  TUBED_ASSERT(connection.tls);
  std::unique_ptr<TlsChannel> channel(
      new TlsChannel(loop, std::move(connection), std::move(proxied)));
  if (!channel->is_watched()) return nullptr;
  return channel;
}

Connection TlsChannel::release_connection() {
  Connection connection(release());
  connection.tls = std::move(session_);
  if (decrypted_ != nullptr) decrypted_->disarm();
  return connection;
}

std::string TlsChannel::peer() const {
  return proxied_.address.empty() ? PolledSocket::peer() : proxied_.address;
}

// --- Reading and writing

os::Transfer TlsChannel::read(std::span<char> buffer) {
  return read(std::span<const std::span<char>>(&buffer, 1));
}

os::Transfer TlsChannel::read(std::span<const std::span<char>> buffers) {
  std::size_t total = 0;
  for (std::span<char> buffer : buffers) {
    while (!buffer.empty()) {
      // Only the first read may make a system call; later reads take what has arrived with it.
      if (total > 0 && !session_.has_decrypted()) return {Kind::done, total};
      std::size_t got = 0;
      data_follows_ = false;
      const Kind kind = session_.read(buffer, got);
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
    const Kind kind = session_.write(record, sent);
    if (kind == Kind::failed || kind == Kind::end) return {Kind::failed, total};
    total += sent;
    for (offset += sent; at < pieces.size() && offset >= pieces[at].size(); ++at)
      offset -= pieces[at].size();
    if (sent < record.size()) break;
  }
  return total > 0 ? os::Transfer{Kind::done, total} : os::Transfer{Kind::would_block, 0};
}

bool TlsChannel::has_unread() const {
  return session_.has_decrypted() || os::has_unread(socket());
}

void TlsChannel::end_output() {
  session_.end_output();
  os::end_output(socket());
}

// --- Waiting

void TlsChannel::want(bool readable, bool writable) {
  wants_readable_ = readable;
  wants_writable_ = writable;
  watch(readable || may_find_end(), writable);
  const bool has_input = session_.has_decrypted() || end_follows_;
  if (((readable || may_find_end()) && has_input) || (session_.established() && ended_early_)) {
    if (decrypted_ == nullptr) {
      decrypted_ = std::make_unique<Timer>(loop_, [this] { on_events({.readable = true}); });
    }
    decrypted_->arm({});
  } else if (decrypted_ != nullptr) {
    decrypted_->disarm();
  }
}

void TlsChannel::on_events(Readiness ready) {
  if (session_.established()) {
    // The socket may end after TLS has ended; only the first end is reported.
    ready.half_closed |= std::exchange(ended_early_, false);
    if (ready.half_closed) ready.half_closed = !std::exchange(end_reported_, true);
  } else {
    ended_early_ |= ready.half_closed;
  }
  // The reason of the other end may have arrived before the loss of the connection.
  if (ready.broken && session_.established()) static_cast<void>(session_.peek());
  if (ready.readable && !wants_readable_) {
    ready.readable = false;
    if (may_find_end()) look_for_end(ready);
    watch(may_find_end(), wants_writable_);
  }
  if (ready.readable || ready.writable || ready.half_closed || ready.broken) report(ready);
}

bool TlsChannel::may_find_end() const {
  return session_.established() && !end_reported_ && !data_follows_;
}

// Passes no bytes to the owner.
void TlsChannel::look_for_end(Readiness& ready) {
  if (!end_follows_) {
    const Kind kind = session_.peek();
    data_follows_ = kind == Kind::done;
    end_follows_ = kind == Kind::end || kind == Kind::failed;
  }
  if (!end_follows_) return;
  end_reported_ = true;
  (session_.broken() ? ready.broken : ready.half_closed) = true;
}

void TlsChannel::pause() {
  PolledSocket::pause();
  if (decrypted_ != nullptr) decrypted_->disarm();
}

}  // namespace tubed::loop
