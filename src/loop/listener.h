// Listener: a listening socket in the loop.
//
// Never spins: when descriptors run out, connections are refused through a spare one, and if even
// that fails it looks away for a moment.
#pragma once

#include <cstdint>
#include <string>

#include "loop/loop.h"
#include "loop/timer.h"
#include "os/socket.h"

namespace tubed::loop {

class ListenerOwner {
 public:
  virtual void on_connection(os::Socket socket) = 0;
  // For this reason so many connections were refused; 0: and none could be taken even for that.
  virtual void on_accept_trouble(const std::string& reason, std::uint64_t refused) = 0;

 protected:
  ~ListenerOwner() = default;
};

class Listener {
 public:
  // `socket` listens. `path`: of a unix socket, removed when the listener closes.
  Listener(Loop& loop, os::Socket socket, std::string path, std::string_view refusal,
           ListenerOwner& owner);
  ~Listener();

  // In between, connections wait in the kernel. on_connection() may call it.
  void pause();
  void resume();

  const os::Socket& socket() const { return socket_; }

 private:
  static void on_poll(uv_poll_t* handle, int status, int events);
  void accept_some();
  bool accept_one();
  void out_of_descriptors(int error);
  void start();

  ListenerOwner& owner_;
  os::Socket socket_;
  std::string path_;
  std::string_view refusal_;  // what a connection is told that no descriptor is left for
  os::Socket spare_;
  bool paused_ = false;
  Timer resume_;
  Handle<uv_poll_t> handle_;
};

}  // namespace tubed::loop
