// Channel: a connected socket in the loop. It says when something can be done; its owner does it.
//
// Readiness is asked for with uv_poll, not uv_stream, for two reasons: a half-close must be noticed
// while nothing is read (a client that waits in reserve), and one turn reads and writes each
// connection with one system call straight from where the bytes lie.
#pragma once

#include "loop/loop.h"
#include "os/socket.h"

namespace tubed::loop {

struct Readiness {
  bool readable = false;
  bool writable = false;
  bool half_closed = false;  // the peer sends nothing more; told once
  bool broken = false;       // the connection is gone

  void add(const Readiness& other) {
    readable |= other.readable;
    writable |= other.writable;
    half_closed |= other.half_closed;
    broken |= other.broken;
  }
};

class ChannelOwner {
 public:
  virtual void on_ready(Readiness ready) = 0;

 protected:
  ~ChannelOwner() = default;
};

class Channel {
 public:
  Channel(Loop& loop, os::Socket socket, ChannelOwner& owner);
  ~Channel();

  // False: the kernel had no room to watch it (fs.epoll.max_user_watches); it tells nothing then.
  bool usable() const { return handle_.get() != nullptr; }
  const os::Socket& socket() const { return socket_; }

  // What on_ready() is called for, from now on. A half-close is always told.
  void want(bool readable, bool writable);
  // It is not called at all until the next want().
  void pause() { start(0); }

 private:
  static void on_poll(uv_poll_t* handle, int status, int events);
  void start(int events);

  ChannelOwner& owner_;
  os::Socket socket_;
  Handle<uv_poll_t> handle_;
  int events_ = 0;
  bool half_closed_ = false;
};

}  // namespace tubed::loop
