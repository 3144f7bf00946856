#include "tubectl/connection.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>

#include "os/descriptor.h"
#include "tubectl/system_error.h"

namespace tubed::tubectl {

Connection::Connection(os::Descriptor descriptor) : descriptor_(std::move(descriptor)) {
  const int flags = ::fcntl(number(), F_GETFL);
  TUBED_ASSERT(flags >= 0 && ::fcntl(number(), F_SETFL, flags | O_NONBLOCK) == 0);
}

Result<void> Connection::send(std::string_view bytes) {
  TUBED_ASSERT(!blocked());
  const auto taken = TRY(send_some(bytes));
  unsent_.assign(bytes.substr(taken));
  sent_ = 0;
  return {};
}

Result<void> Connection::flush() {
  const auto taken = TRY(send_some(std::string_view(unsent_).substr(sent_)));
  sent_ += taken;
  return {};
}

Result<std::size_t> Connection::send_some(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    const ssize_t done = ::send(number(), bytes.data() + taken, bytes.size() - taken, MSG_NOSIGNAL);
    if (done >= 0) {
      taken += static_cast<std::size_t>(done);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return system_error("cannot send");
    }
  }
  return taken;
}

Result<std::string_view> Connection::receive(std::span<char> buffer) {
  const ssize_t got = ::recv(number(), buffer.data(), buffer.size(), 0);
  if (got > 0) return std::string_view(buffer.data(), static_cast<std::size_t>(got));
  if (got == 0) return Error{"the server closed a connection"};
  if (errno == EAGAIN || errno == EINTR) return std::string_view();
  return system_error("cannot receive");
}

}  // namespace tubed::tubectl
