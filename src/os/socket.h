// Socket: an owned descriptor of a non-blocking socket, and what can be done with it at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/time.h"

namespace tubed::os {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  // It is the caller's now.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

struct Transfer {
  enum class Kind : std::uint8_t { done, would_block, end, failed };
  Kind kind = Kind::done;
  std::size_t bytes = 0;
};

// Fills the buffers in order, with one system call. `end`: the peer sends nothing more.
Transfer read_into(const Socket& socket, std::span<const std::span<char>> buffers);
Transfer read_into(const Socket& socket, std::span<char> buffer);
// Writes the pieces in order, with one system call; maybe not all of them.
Transfer write_from(const Socket& socket, std::span<const std::string_view> pieces);
Transfer write_from(const Socket& socket, std::string_view piece);

// At most this many pieces are written in one call.
inline constexpr std::size_t kMaxPieces = 64;

// Something has arrived that nobody has read.
bool has_unread(const Socket& socket);
// The peer gets the end of the stream behind what was written; it can still be read from.
void end_output(const Socket& socket);

// Sets TCP_NODELAY, and keepalive with the first probe after `idle`. Does nothing to a unix socket.
void tune_connection(const Socket& socket, Duration keepalive_idle);

// Says one line to a connection that is not served, and closes it.
void refuse_connection(Socket socket, std::string_view line);

// As every socket that is made here is: calls do not wait, and no child process gets it.
void make_our_own(const Socket& socket);

struct UnixAccess {
  std::optional<unsigned> mode;  // none: as the umask has it
  std::string group;             // empty: the process's
};

// False: this process may not make TCP sockets at all (RestrictAddressFamilies= of systemd).
bool may_open_tcp();

// A listening socket on a numeric address. Port 0: any free one.
Result<Socket> listen_tcp(const std::string& host, std::uint16_t port, int backlog);
// A listening unix socket; takes the place of one that nobody serves any more.
Result<Socket> listen_unix(const std::string& path, const UnixAccess& access, int backlog);
// The step of listen_unix after bind(): gives the socket at `path` its group, and its mode where
// bind() did not. An error, and nothing is changed, if another file has taken its place.
Result<void> grant_access(const std::string& path, const UnixAccess& access);

// Removes the path if it is still this socket's.
void remove_unix_path(const Socket& socket, const std::string& path);

// "127.0.0.1:11300", "[::1]:11300" or "unix:/path", as bound.
std::string local_address(const Socket& socket);

}  // namespace tubed::os
