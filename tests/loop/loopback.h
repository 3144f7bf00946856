// What the tests of os/, loop/ and server/ share: the other ends of connections, and a loop that is
// run until something is so.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include <sys/resource.h>
#include <uv.h>

#include "loop/loop.h"
#include "os/socket.h"

namespace tubed::loop_test {

// Two connected unix sockets.
std::pair<os::Socket, os::Socket> connected_pair();

// On a port of its own, with room for a crowd.
os::Socket listening();

// A connection to what local_address() told, non-blocking. An empty Socket: refused.
os::Socket connect_to(const std::string& address);

// What is there to read now.
std::string read_some(const os::Socket& socket);
// Waits for `bytes` or for the end of the stream, a few seconds at most.
std::string read_exactly(const os::Socket& socket, std::size_t bytes);
// Waits for the end of the stream, a few seconds at most; what came before it.
std::string read_to_end(const os::Socket& socket);
void write_all(const os::Socket& socket, std::string_view bytes);
void half_close(const os::Socket& socket);
// Closes with a reset instead of an orderly end. TCP only.
void reset(os::Socket socket);

int option_of(const os::Socket& socket, int level, int option);
bool has_ipv6();

// Turns the loop until `condition` holds; false: it did not within a few seconds.
template <class Condition>
bool run_until(loop::Loop& loop, Condition condition) {
  const std::uint64_t deadline = uv_hrtime() + 10'000'000'000;
  while (!condition()) {
    if (uv_hrtime() > deadline) return false;
    uv_run(loop.uv(), UV_RUN_NOWAIT);
  }
  return true;
}

inline void turn(loop::Loop& loop, int times = 1) {
  for (int i = 0; i < times; ++i) uv_run(loop.uv(), UV_RUN_NOWAIT);
}

// For its lifetime no descriptor can be opened; those that are open stay.
class NoDescriptors {
 public:
  NoDescriptors();
  ~NoDescriptors();
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

// A directory of its own, removed with what is in it.
class Directory {
 public:
  Directory();
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace tubed::loop_test
