// What the tests of platform/ and server/ share: the other ends of connections, and a loop that is
// run until something is so.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include <sys/resource.h>
#include <uv.h>

#include "platform/loop.h"
#include "platform/socket.h"

namespace tubed::platform_test {

// Two connected unix sockets.
std::pair<platform::Socket, platform::Socket> connected_pair();

// On a port of its own, with room for a crowd.
platform::Socket listening();

// A connection to what local_address() told, non-blocking. An empty Socket: refused.
platform::Socket connect_to(const std::string& address);

// What is there to read now.
std::string read_some(const platform::Socket& socket);
// Waits for `bytes` or for the end of the stream, a few seconds at most.
std::string read_exactly(const platform::Socket& socket, std::size_t bytes);
// Waits for the end of the stream, a few seconds at most; what came before it.
std::string read_to_end(const platform::Socket& socket);
void write_all(const platform::Socket& socket, std::string_view bytes);
void half_close(const platform::Socket& socket);
// Closes with a reset instead of an orderly end. TCP only.
void reset(platform::Socket socket);

int option_of(const platform::Socket& socket, int level, int option);
bool has_ipv6();

// Turns the loop until `condition` holds; false: it did not within a few seconds.
template <class Condition>
bool run_until(platform::Loop& loop, Condition condition) {
  const std::uint64_t deadline = uv_hrtime() + 10'000'000'000;
  while (!condition()) {
    if (uv_hrtime() > deadline) return false;
    uv_run(loop.uv(), UV_RUN_NOWAIT);
  }
  return true;
}

inline void turn(platform::Loop& loop, int times = 1) {
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

}  // namespace tubed::platform_test
