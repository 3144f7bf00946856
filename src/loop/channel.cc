#include "loop/channel.h"

namespace tubed::loop {

Channel::Channel(Loop& loop, os::Socket socket, ChannelOwner& owner)
    : owner_(owner), socket_(std::move(socket)), handle_(this) {
  const int refused = uv_poll_init_socket(loop.uv(), handle_.get(), socket_.descriptor());
  if (refused != 0) handle_.forget();
}

Channel::~Channel() {
  // The descriptor may be reused as soon as it is closed: the loop must have let go of it.
  if (usable()) uv_poll_stop(handle_.get());
}

void Channel::want(bool readable, bool writable) {
  const int events = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0) |
                     (half_closed_ ? 0 : UV_DISCONNECT);
  if (usable() && events != events_) start(events);
}

void Channel::start(int events) {
  events_ = events;
  if (events == 0) {
    uv_poll_stop(handle_.get());
  } else {
    uv_poll_start(handle_.get(), events, &Channel::on_poll);
  }
}

void Channel::on_poll(uv_poll_t* handle, int status, int events) {
  Channel& stream = owner_of<Channel>(handle);
  Readiness ready{.readable = (events & UV_READABLE) != 0,
                  .writable = (events & UV_WRITABLE) != 0,
                  .half_closed = (events & UV_DISCONNECT) != 0,
                  .broken = status < 0};
  if (ready.half_closed) {
    // It stays true; asked for again, it would be told in each turn.
    stream.half_closed_ = true;
    stream.start(stream.events_ & ~UV_DISCONNECT);
  }
  stream.owner_.on_ready(ready);
}

}  // namespace tubed::loop
