// Socket: owns the descriptor of a non-blocking socket, and closes it. Also: the operations on
// connections and listening sockets, none of which waits.
//
// Errors of functions that return a Result are one line with the address and the reason.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  // Hands the descriptor to the caller, who closes it.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// The result of one read or write.
struct Transfer {
  enum class Kind : std::uint8_t {
    done,         // `bytes` bytes were transferred, at least 1
    would_block,  // nothing can be transferred now
    end,          // of a read: the peer sends nothing more
    failed,       // the connection is lost
  };
  Kind kind = Kind::done;
  std::size_t bytes = 0;
};

// Fills the buffers, at most 2, in order and with one system call.
Transfer read_into(const Socket& socket, std::span<const std::span<char>> buffers);
Transfer read_into(const Socket& socket, std::span<char> buffer);
// Writes the pieces in order and with one system call: at most kMaxPieces of them, and possibly
// only a part of the bytes. The process must ignore SIGPIPE.
Transfer write_from(const Socket& socket, std::span<const std::string_view> pieces);
Transfer write_from(const Socket& socket, std::string_view piece);

inline constexpr std::size_t kMaxPieces = 64;

// True if bytes have arrived that are not read yet. The end of the stream does not count.
bool has_unread(const Socket& socket);
// Sends the end of the stream after the bytes that were written. Input can still be read.
void end_output(const Socket& socket);

// Sets TCP_NODELAY, and keepalive with the first probe after `keepalive_idle`, in whole seconds. A
// listening socket passes the options on to its connections. Does nothing to a unix socket.
void tune_connection(const Socket& socket, Duration keepalive_idle);

// The kernel gives the connection up if bytes that were sent are not acknowledged within `timeout`,
// in whole milliseconds, at least 1. Also bounds how long it takes to be made. TCP only.
void set_user_timeout(const Socket& socket, Duration timeout);

// Sends one line, without its end, to a connection that is not served. Empty: sends nothing.
void send_refusal(const Socket& socket, std::string_view line);
// The same, and closes the connection.
void refuse_connection(Socket socket, std::string_view line);

// Begins a connection to a numeric address. The socket is writable as soon as the connection is
// made or has failed; finish_connect() says which.
Result<Socket> connect_tcp(const std::string& host, std::uint16_t port);
// Precondition: the socket is of connect_tcp(), and has become writable. An error: the connection
// was not made. A connection of the socket to itself, which the kernel makes if it chooses the port
// that is dialled for this end and no process listens there, is an error too. Both may be called
// from any thread.
Result<void> finish_connect(const Socket& socket);

// Two connected unix sockets. The error is one line.
Result<std::pair<Socket, Socket>> socket_pair();

// Makes an inherited socket non-blocking and close-on-exec, as all sockets of this file are.
void set_nonblocking_cloexec(const Socket& socket);

struct UnixAccess {
  std::optional<unsigned> mode;  // none: 0777 less the umask
  std::string group;             // a name; empty: the group of the process
};

// False if this process may not create TCP sockets (RestrictAddressFamilies= of systemd).
bool may_open_tcp();

// Listens on a numeric address. Port 0: any free port. An IPv6 socket does not accept IPv4
// connections. `backlog`: as of listen(2).
Result<Socket> listen_tcp(const std::string& host, std::uint16_t port, int backlog);
// Listens on a unix socket. Replaces a socket that no process serves; refuses to replace any other
// file.
Result<Socket> listen_unix(const std::string& path, const UnixAccess& access, int backlog);
// Gives the socket at `path` its group, and its mode if that differs. If another file has taken its
// place, returns an error and changes nothing. Part of listen_unix(); separate for tests.
Result<void> grant_access(const std::string& path, const UnixAccess& access);

// The next connection that waits, non-blocking and close-on-exec. Empty: none can be accepted, and
// errno is that of accept4(2).
Socket accept_from(const Socket& listening);

// Removes the path if it still leads to this socket, which stops listening.
void remove_unix_path(const Socket& socket, const std::string& path);

// The address to which the socket is bound: "127.0.0.1:11300", "[::1]:11300", "unix:/path" or
// "unix:@abstract". "?": unknown.
std::string local_address(const Socket& socket);
// The address of the other end: as above, or "unix uid 1000 pid 4711" for a unix socket. "?":
// unknown.
std::string peer_address(const Socket& socket);

// The machine of a peer_address(), as far as the address shows it: an IPv4 address, the first 64
// bits of an IPv6 address, since one machine has all of these, or "unix".
std::string network_of(std::string_view peer);

// True if the peer has ended its output or the connection is lost. A peer that has closed the
// connection looks like one that may still read. One system call.
bool has_ended(const Socket& socket);

// A peer_address() as one word: "127.0.0.1:50312", "unix:1000:4711" with the user and the process,
// "-" if it is unknown.
std::string peer_word(std::string_view peer);

// The process at the other end of a unix socket, as it was when it connected. [unix(7)]
struct PeerCredentials {
  std::int32_t process = 0;
  std::uint32_t user = 0;
  std::vector<std::uint32_t> groups = {};  // all of them
};
// Nothing for a TCP socket. O(groups).
std::optional<PeerCredentials> peer_credentials(const Socket& socket);

}  // namespace tubed::os
