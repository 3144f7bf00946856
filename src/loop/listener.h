// Listener: accepts the connections of a listening socket and hands them to its owner.
//
// It does not spin when the process is out of descriptors (listener.cc).
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
  // `refused` connections were refused because of an error, whose text is `reason`. 0: connections
  // wait in the kernel, and not even a refusal was possible.
  virtual void on_accept_error(const std::string& reason, std::uint64_t refused) = 0;
  // The process is out of descriptors. Returns true if the owner has closed descriptors that it
  // could spare.
  virtual bool free_descriptors() { return false; }

 protected:
  ~ListenerOwner() = default;
};

class Listener {
 public:
  // Takes over the listening `socket`. `path`: the path of a unix socket, removed with the
  // listener, or empty. `refusal`: a literal, the line for refused connections without its end;
  // empty: they are closed without a line. `loop` and `owner` outlive the listener.
  Listener(Loop& loop, os::Socket socket, std::string path, std::string_view refusal,
           ListenerOwner& owner);
  ~Listener();

  // While paused, connections wait in the kernel. on_connection() may call these functions.
  void pause();
  void resume();

  void set_refusal(std::string_view refusal) { refusal_ = refusal; }
  const os::Socket& socket() const { return socket_; }

 private:
  static void on_poll(uv_poll_t* handle, int status, int events);
  void accept_connections();
  bool accept_one();
  void refuse_connections(int error);
  void start();

  ListenerOwner& owner_;
  os::Socket socket_;
  std::string path_;
  std::string_view refusal_;
  os::Socket spare_;  // open only to be closed when descriptors run out
  bool paused_ = false;
  Timer resume_;
  Handle<uv_poll_t> handle_;
};

}  // namespace tubed::loop
