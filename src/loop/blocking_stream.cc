#include "loop/blocking_stream.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/clock.h"

namespace tubed::loop {

using os::Transfer;

BlockingStream::BlockingStream(Duration timeout) : BlockingStream(Connection(), timeout) {}

BlockingStream::BlockingStream(Connection connection, Duration timeout)
    : timeout_(timeout),
      connection_(std::move(connection)),
      event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (connection_) os::set_nonblocking_cloexec(connection_.socket);
}

void BlockingStream::interrupt() {
  interrupted_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_.number(), &one, sizeof one);
}

// Waits for readiness. Returns false at the deadline.
Result<bool> BlockingStream::is_ready_by(Time deadline, short events) const {
  if (!event_) return Error{"no descriptor is free"};
  for (;;) {
    if (interrupted_) return Error{"stopped"};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - os::monotonic_now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> watched{
        pollfd{.fd = connection_.socket.descriptor(), .events = events, .revents = 0},
        pollfd{.fd = event_.number(), .events = POLLIN, .revents = 0}};
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return Error{"poll: " + os::error_text(errno)};
    if (ready > 0 && watched[0].revents != 0 && !interrupted_) return true;
  }
}

Result<void> BlockingStream::wait(short events) const {
  if (TRY(is_ready_by(os::monotonic_now() + timeout_, events))) return {};
  return Error{fmt::format("no progress for {} s", whole_seconds(timeout_))};
}

Result<void> BlockingStream::connect(const std::string& host, std::uint16_t port) {
  if (interrupted_) return Error{"stopped"};
  connection_ = TRY(os::connect_tcp(host, port));
  TRY(wait(POLLOUT));
  if (const auto made = os::finish_connect(connection_.socket); !made)
    return Error{"cannot connect: " + made.error().message};
  return {};
}

Result<TlsPeer> BlockingStream::secure(std::shared_ptr<const TlsContext> context) {
  if (!connection_.begin_tls(std::move(context), TlsSession::Side::client))
    return Error{"no memory for TLS"};
  TlsSession& tls = connection_.tls;
  const Time deadline = os::monotonic_now() + timeout_;
  for (;;) {
    if (interrupted_) return Error{"stopped"};
    const auto step = tls.shake_hands();
    if (step == TlsSession::Handshake::done) return tls.peer();
    if (step == TlsSession::Handshake::failed) return Error{tls.failure()};
    const short events = step == TlsSession::Handshake::writes ? POLLOUT : POLLIN;
    if (!TRY(is_ready_by(deadline, events))) return Error{"the handshake has taken too long"};
  }
}

// TLS may have to read in order to write, and the other way round.
short BlockingStream::awaited(short events) const {
  if (!connection_.tls) return events;
  return connection_.tls.waits_to_write() ? POLLOUT : POLLIN;
}

Result<void> BlockingStream::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (interrupted_) return Error{"stopped"};
    const Transfer sent = connection_.write(bytes);
    if (sent.kind == Transfer::Kind::done) {
      bytes.remove_prefix(sent.bytes);
    } else if (sent.kind == Transfer::Kind::would_block) {
      TRY(wait(awaited(POLLOUT)));
    } else {
      return Error{"the connection is lost"};
    }
  }
  return {};
}

Result<void> BlockingStream::read(std::span<char> bytes) {
  while (!bytes.empty()) {
    if (interrupted_) return Error{"stopped"};
    const Transfer got = connection_.read(bytes);
    if (got.kind == Transfer::Kind::done) {
      bytes = bytes.subspan(got.bytes);
    } else if (got.kind == Transfer::Kind::would_block) {
      TRY(wait(awaited(POLLIN)));
    } else {
      return Error{got.kind == Transfer::Kind::end ? "the connection was closed"
                                                   : "the connection is lost"};
    }
  }
  return {};
}

}  // namespace tubed::loop
