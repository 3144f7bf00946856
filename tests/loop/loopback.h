// Helpers for the tests of os/, loop/ and server/: the other end of a connection, a temporary
// directory, and running the loop until a condition holds.
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

// Bounds waits that would never end. The tests wait for conditions, however long they take.
inline constexpr std::chrono::minutes kLastResort{10};

// Returns two connected unix sockets.
std::pair<os::Socket, os::Socket> connected_pair();

// Returns a listening TCP socket on a free port, with a long backlog.
os::Socket listening();

// Returns a TCP socket whose port refuses connections, because it does not listen.
os::Socket refusing();

// Returns a non-blocking connection to an address from local_address(), or an empty Socket if it is
// refused.
os::Socket connect_to(const std::string& address);

// The same from this address of the machine, such as 127.0.0.2. Over IPv4 only.
os::Socket connect_from(const char* host, const std::string& address);

// Reads without waiting.
std::string read_some(const os::Socket& socket);
// Reads `bytes` bytes, or fewer if the stream ends or nothing arrives for kLastResort.
std::string read_exactly(const os::Socket& socket, std::size_t bytes);
// Reads up to the end of the stream, which must arrive within kLastResort.
std::string read_to_end(const os::Socket& socket);
void write_all(const os::Socket& socket, std::string_view bytes);
void half_close(const os::Socket& socket);
// Closes with a reset instead of an orderly end. TCP only.
void reset(os::Socket socket);

int option_of(const os::Socket& socket, int level, int option);
bool has_ipv6();

// Waits for an event of the loop, at most a millisecond: the condition of run_until() may also
// depend on a timer or another thread.
void wait_briefly(loop::Loop& loop);

// Runs the loop until `condition` holds. Returns false if it did not hold within kLastResort.
template <class Condition>
bool run_until(loop::Loop& loop, Condition condition) {
  const std::uint64_t deadline = uv_hrtime() + std::chrono::nanoseconds(kLastResort).count();
  for (int ticks = 0; !condition(); ++ticks) {
    if (uv_hrtime() > deadline) return false;
    uv_run(loop.uv(), UV_RUN_NOWAIT);
    if (ticks > 20) wait_briefly(loop);
  }
  return true;
}

// Runs iterations of the loop that do not wait for events.
inline void run_ticks(loop::Loop& loop, int times = 1) {
  for (int i = 0; i < times; ++i) uv_run(loop.uv(), UV_RUN_NOWAIT);
}

// While it exists, the process cannot open descriptors. Open descriptors stay open.
class NoDescriptors {
 public:
  NoDescriptors();
  ~NoDescriptors();
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

// A temporary directory, which is removed with its contents.
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
