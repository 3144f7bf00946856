#include "os/blocking_stream.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/clock.h"

namespace tubed::os {

BlockingStream::BlockingStream(Duration timeout) : BlockingStream(Socket(), timeout) {}

BlockingStream::BlockingStream(Socket connection, Duration timeout)
    : timeout_(timeout),
      connection_(std::move(connection)),
      event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (connection_) set_nonblocking_cloexec(connection_);
}

void BlockingStream::interrupt() {
  interrupted_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_.number(), &one, sizeof one);
}

// Waits for readiness until the timeout.
Result<void> BlockingStream::wait(short events) const {
  if (!event_) return Error{"no descriptor is free"};
  const Time deadline = monotonic_now() + timeout_;
  for (;;) {
    if (interrupted_) return Error{"stopped"};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - monotonic_now());
    if (left.count() <= 0)
      return Error{fmt::format("no progress for {} s", whole_seconds(timeout_))};
    std::array<pollfd, 2> watched{
        pollfd{.fd = connection_.descriptor(), .events = events, .revents = 0},
        pollfd{.fd = event_.number(), .events = POLLIN, .revents = 0}};
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return Error{"poll: " + error_text(errno)};
    if (ready > 0 && watched[0].revents != 0 && !interrupted_) return {};
  }
}

Result<void> BlockingStream::connect(const std::string& host, std::uint16_t port) {
  if (interrupted_) return Error{"stopped"};
  connection_ = TRY(connect_tcp(host, port));
  TRY(wait(POLLOUT));
  if (const auto made = finish_connect(connection_); !made)
    return Error{"cannot connect: " + made.error().message};
  return {};
}

Result<void> BlockingStream::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (interrupted_) return Error{"stopped"};
    const Transfer sent = write_from(connection_, bytes);
    if (sent.kind == Transfer::Kind::done) {
      bytes.remove_prefix(sent.bytes);
    } else if (sent.kind == Transfer::Kind::would_block) {
      TRY(wait(POLLOUT));
    } else {
      return Error{"the connection is lost"};
    }
  }
  return {};
}

Result<void> BlockingStream::read(std::span<char> bytes) {
  while (!bytes.empty()) {
    if (interrupted_) return Error{"stopped"};
    const Transfer got = read_into(connection_, bytes);
    if (got.kind == Transfer::Kind::done) {
      bytes = bytes.subspan(got.bytes);
    } else if (got.kind == Transfer::Kind::would_block) {
      TRY(wait(POLLIN));
    } else {
      return Error{got.kind == Transfer::Kind::end ? "the connection was closed"
                                                   : "the connection is lost"};
    }
  }
  return {};
}

}  // namespace tubed::os
