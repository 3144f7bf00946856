#include "loop/listener.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tubed::loop {

namespace {

// More wait for the next turn, so that a crowd at the door does not hold up who is inside.
constexpr int kConnectionsPerTurn = 64;
constexpr Duration kLookAway = std::chrono::milliseconds(100);

os::Socket open_spare() {
  return os::Socket(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

os::Socket accept_from(const os::Socket& socket) {
  return os::Socket(::accept4(socket.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

}  // namespace

Listener::Listener(Loop& loop, os::Socket socket, std::string path, std::string_view refusal,
                   ListenerOwner& owner)
    : owner_(owner),
      socket_(std::move(socket)),
      path_(std::move(path)),
      refusal_(refusal),
      spare_(open_spare()),
      resume_(loop, [this] { start(); }),
      handle_(this) {
  TUBED_ASSERT(uv_poll_init_socket(loop.uv(), handle_.get(), socket_.descriptor()) == 0);
  start();
}

Listener::~Listener() {
  uv_poll_stop(handle_.get());
  if (!path_.empty()) os::remove_unix_path(socket_, path_);
}

void Listener::pause() {
  paused_ = true;
  resume_.disarm();
  uv_poll_stop(handle_.get());
}

void Listener::resume() {
  if (std::exchange(paused_, false)) start();
}

void Listener::start() {
  uv_poll_start(handle_.get(), UV_READABLE, &Listener::on_poll);
}

void Listener::on_poll(uv_poll_t* handle, int, int) {
  owner_of<Listener>(handle).accept_some();
}

void Listener::accept_some() {
  for (int i = 0; i < kConnectionsPerTurn; ++i) {
    if (paused_ || !accept_one()) return;
  }
}

// False: nobody is waiting, or nothing can be done for now.
bool Listener::accept_one() {
  os::Socket connection = accept_from(socket_);
  if (connection) {
    owner_.on_connection(std::move(connection));
    return true;
  }
  switch (errno) {
    case EAGAIN:
      return false;
    case ECONNABORTED:
    case EINTR:
    case EPERM:
    case EPROTO:
      return true;  // that one connection failed before it was taken
    default:
      out_of_descriptors(errno);
      return false;
  }
}

void Listener::out_of_descriptors(int error) {
  spare_ = os::Socket();
  std::uint64_t refused = 0;
  int ended_by = 0;
  while (ended_by == 0 && refused < kConnectionsPerTurn) {
    os::Socket connection = accept_from(socket_);
    if (connection) {
      os::refuse_connection(std::move(connection), refusal_);
      ++refused;
    } else {
      ended_by = errno;
    }
  }
  spare_ = open_spare();
  const bool helpless = (ended_by != 0 && ended_by != EAGAIN) || !spare_;
  // To find out that nobody waits takes a descriptor as well: then nothing was wrong.
  if (refused > 0 || helpless) owner_.on_accept_trouble(std::strerror(error), refused);
  if (!helpless) return;
  uv_poll_stop(handle_.get());
  resume_.arm(kLookAway);
}

}  // namespace tubed::loop
