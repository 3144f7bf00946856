#include "client/transport.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>

#include "client/system_error.h"
#include "os/descriptor.h"

namespace tubed::client {

Transport::Transport(os::Descriptor descriptor) : descriptor_(std::move(descriptor)) {
  const int flags = ::fcntl(number(), F_GETFL);
  TUBED_ASSERT(flags >= 0 && ::fcntl(number(), F_SETFL, flags | O_NONBLOCK) == 0);
}

Result<void> Transport::start_tls(const TlsContext& context, const Address& server,
                                  Duration timeout) {
  tls_.emplace(TRY(TlsStream::open(context, server, number(), timeout)));
  return {};
}

Result<void> Transport::send(std::string_view bytes) {
  TUBED_ASSERT(!blocked());
  const auto accepted = TRY(send_some(bytes));
  unsent_.assign(bytes.substr(accepted));
  sent_ = 0;
  return {};
}

Result<void> Transport::flush() {
  if (tls_) tls_->room_came();
  const auto accepted = TRY(send_some(std::string_view(unsent_).substr(sent_)));
  sent_ += accepted;
  return {};
}

Result<std::size_t> Transport::send_some(std::string_view bytes) {
  if (tls_) return tls_->send_some(bytes);
  std::size_t accepted = 0;
  while (accepted < bytes.size()) {
    const ssize_t done =
        ::send(number(), bytes.data() + accepted, bytes.size() - accepted, MSG_NOSIGNAL);
    if (done >= 0) {
      accepted += static_cast<std::size_t>(done);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return system_error("cannot send");
    }
  }
  return accepted;
}

Result<std::string_view> Transport::receive(std::span<char> buffer) {
  if (tls_) return tls_->receive(buffer);
  const ssize_t got = ::recv(number(), buffer.data(), buffer.size(), 0);
  if (got > 0) {
    answered_ = true;
    return std::string_view(buffer.data(), static_cast<std::size_t>(got));
  }
  if (got == 0) {
    // Many servers do so if a client starts without TLS.
    return Error{answered_ ? "the server closed a connection"
                           : "the server closed a connection without an answer; if it speaks TLS, "
                             "use --tls"};
  }
  if (errno == EAGAIN || errno == EINTR) return std::string_view();
  return system_error("cannot receive");
}

}  // namespace tubed::client
