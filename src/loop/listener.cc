// When accept4() finds no free descriptor, the connection stays in the kernel's queue and the
// socket stays readable, so a plain event loop would spin. If the owner cannot free a descriptor,
// the listener does this instead:
//
// 1. It closes its spare descriptor to be able to accept.
// 2. It accepts connections, refuses each with a line and closes it, up to kConnectionsPerTick.
// 3. It opens the spare descriptor again.
// 4. If the spare cannot be opened, or accepting failed in step 2, it stops watching the socket for
//    kRetryDelay.
#include "loop/listener.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace tubed::loop {

namespace {

// Further connections wait for the next tick: many new clients must not delay connected clients.
constexpr int kConnectionsPerTick = 64;
constexpr Duration kRetryDelay = std::chrono::milliseconds(100);

os::Socket open_spare() {
  return os::Socket(::open("/dev/null", O_RDONLY | O_CLOEXEC));
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
  owner_of<Listener>(handle).accept_connections();
}

void Listener::accept_connections() {
  for (int i = 0; i < kConnectionsPerTick; ++i) {
    if (paused_ || !accept_one()) return;
  }
}

// Returns false if no connection is waiting, or none can be accepted now.
bool Listener::accept_one() {
  os::Socket connection = os::accept_from(socket_);
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
      return true;  // this connection failed before it was accepted; the next may not
    default:
      refuse_connections(errno);
      return false;
  }
}

void Listener::refuse_connections(int error) {
  if (owner_.free_descriptors()) return;  // the socket is still readable
  spare_ = os::Socket();
  std::uint64_t refused = 0;
  int ended_by = 0;
  while (ended_by == 0 && refused < kConnectionsPerTick) {
    os::Socket connection = os::accept_from(socket_);
    if (connection) {
      os::refuse_connection(std::move(connection), refusal_);
      ++refused;
    } else {
      ended_by = errno;
    }
  }
  spare_ = open_spare();
  const bool must_wait = (ended_by != 0 && ended_by != EAGAIN) || !spare_;
  // accept4() needs a descriptor even to find the queue empty; that is not an error to report.
  if (refused > 0 || must_wait) owner_.on_accept_error(std::strerror(error), refused);
  if (!must_wait) return;
  uv_poll_stop(handle_.get());
  resume_.arm(kRetryDelay);
}

}  // namespace tubed::loop
