// PolledSocket: a base class of channels over a socket: the connected socket and the uv_poll that
// reports its readiness.
#pragma once

#include "loop/channel.h"

namespace tubed::loop {

class PolledSocket : public Channel {
 public:
  ~PolledSocket() override {
    // Stops watching before the socket is closed: the kernel may reuse the descriptor at once.
    if (is_watched()) uv_poll_stop(handle_.get());
  }

  // False: the kernel refuses to watch the descriptor.
  bool is_watched() const { return handle_.get() != nullptr; }

  void want(bool readable, bool writable) override { watch(readable, writable); }
  void pause() override { start(0); }
  bool has_ended() const override { return os::has_ended(socket_); }
  std::string peer() const override { return os::peer_address(socket_); }

 protected:
  PolledSocket(Loop& loop, os::Socket socket) : socket_(std::move(socket)), handle_(this) {
    const int refused = uv_poll_init_socket(loop.uv(), handle_.get(), socket_.descriptor());
    if (refused != 0) handle_.forget();
  }

  const os::Socket& socket() const { return socket_; }
  // Releases the socket, which the loop no longer watches.
  os::Socket release() {
    if (is_watched()) uv_poll_stop(handle_.get());
    handle_.close();
    return std::move(socket_);
  }
  void watch(bool readable, bool writable) {
    const int events = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0) |
                       (half_closed_ ? 0 : UV_DISCONNECT);
    if (events != events_) start(events);
  }
  // Receives the events that the kernel has reported.
  virtual void on_events(Readiness ready) { report(ready); }

 private:
  void start(int events) {
    events_ = events;
    if (events == 0) {
      uv_poll_stop(handle_.get());
    } else {
      uv_poll_start(handle_.get(), events, &PolledSocket::on_poll);
    }
  }

  static void on_poll(uv_poll_t* handle, int status, int events) {
    auto& channel = owner_of<PolledSocket>(handle);
    const Readiness ready{.readable = (events & UV_READABLE) != 0,
                          .writable = (events & UV_WRITABLE) != 0,
                          .half_closed = (events & UV_DISCONNECT) != 0,
                          .broken = status < 0};
    if (ready.half_closed) {
      // epoll would report the half-close again in each tick.
      channel.half_closed_ = true;
      channel.start(channel.events_ & ~UV_DISCONNECT);
    }
    channel.on_events(ready);
  }

  os::Socket socket_;
  Handle<uv_poll_t> handle_;
  int events_ = 0;
  bool half_closed_ = false;
};

}  // namespace tubed::loop
