// Socket: owns the descriptor of a non-blocking socket, and closes it. Also operations on
// connections and listening sockets; no operation waits.
//
// The error of a Result is one line with the address and the reason.
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
#include "text/host.h"

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
  // Releases the descriptor to the caller, who must close it.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// The result of one read or write.
struct Transfer {
  enum class Kind : std::uint8_t {
    done,         // `bytes` bytes were transferred, at least 1
    would_block,  // nothing can be transferred now
    end,          // of a read: the peer will send nothing more
    failed,       // the connection is lost
  };
  Kind kind = Kind::done;
  std::size_t bytes = 0;
};

// Fills the buffers, at most 2, in order with one system call.
Transfer read_into(const Socket& socket, std::span<const std::span<char>> buffers);
Transfer read_into(const Socket& socket, std::span<char> buffer);
// Fills the buffer as read_into() does, and leaves the bytes to the next read.
Transfer peek_into(const Socket& socket, std::span<char> buffer);
// Writes the pieces in order with one system call: at most kMaxPieces pieces, and possibly only
// part of the bytes. The process must ignore SIGPIPE.
Transfer write_from(const Socket& socket, std::span<const std::string_view> pieces);
Transfer write_from(const Socket& socket, std::string_view piece);

inline constexpr std::size_t kMaxPieces = 64;

// True if unread bytes have arrived. The end of the stream does not count.
bool has_unread(const Socket& socket);
// Ends the output after the bytes that were written. Input can still be read.
void end_output(const Socket& socket);

// Sets TCP_NODELAY, and keepalive with the first probe after `keepalive_idle`, in whole seconds.
// Connections inherit the options of a listening socket. No effect on a unix socket.
void tune_connection(const Socket& socket, Duration keepalive_idle);

// Makes the kernel give up the connection if sent bytes are not acknowledged within `timeout`, in
// whole milliseconds, at least 1. Also bounds connecting. TCP only.
void set_user_timeout(const Socket& socket, Duration timeout);

// Sends one line, given without its end, to a connection that is not served. Sends nothing if
// empty.
void send_refusal(const Socket& socket, std::string_view line);
// Sends the line as send_refusal() does, and closes the connection.
void refuse_connection(Socket socket, std::string_view line);

// Begins a connection to a numeric address. The socket becomes writable when the connection is made
// or has failed; finish_connect() says which.
Result<Socket> connect_tcp(const std::string& host, std::uint16_t port);
// Returns an error if the connection was not made. That includes a connection of the socket to
// itself: the kernel makes one if no process listens on the dialled port and it chooses that port
// for this end. Precondition: the socket is from connect_tcp() and has become writable. Both
// functions may be called from any thread.
Result<void> finish_connect(const Socket& socket);

// Returns two connected unix sockets. The error is one line.
Result<std::pair<Socket, Socket>> socket_pair();

// Makes an inherited socket non-blocking and close-on-exec, like all sockets of this file.
void set_nonblocking_cloexec(const Socket& socket);

struct UnixAccess {
  std::optional<unsigned> mode;  // nothing: 0777 less the umask
  std::string group;             // name; empty: the group of the process
};

// False if this process may not create TCP sockets (RestrictAddressFamilies= of systemd).
bool may_open_tcp();

// Listens on a numeric address. Port 0 is any free port. An IPv6 socket accepts no IPv4
// connections. `backlog` is passed to listen(2).
Result<Socket> listen_tcp(const std::string& host, std::uint16_t port, int backlog);
// Listens on a unix socket. Replaces a socket that no process serves, but no other file. Refuses an
// abstract socket, "@name".
Result<Socket> listen_unix(const std::string& path, const UnixAccess& access, int backlog);
// Gives the socket at `path` its group, and its mode if that differs. Fails without a change if
// another file has taken its place. Part of listen_unix(); separate for tests.
Result<void> grant_access(const std::string& path, const UnixAccess& access);

// Accepts the next waiting connection, non-blocking and close-on-exec. Returns an empty socket and
// the errno of accept4(2) if none can be accepted.
Socket accept_from(const Socket& listening);

// Removes the path if it still leads to this socket, which stops listening.
void remove_unix_path(const Socket& socket, const std::string& path);

// Returns the address to which the socket is bound: "127.0.0.1:11300", "[::1]:11300", "unix:/path"
// or "unix:@abstract". "?": unknown.
std::string local_address(const Socket& socket);
// Returns the address of the peer: as above, or "unix uid 1000 pid 4711" for a unix socket. "?":
// unknown.
std::string peer_address(const Socket& socket);

// Returns what a peer_address() shows of the peer's machine: an IPv4 address, the first 64 bits of
// an IPv6 address, since one machine may use all addresses below them, or "unix".
std::string network_of(std::string_view peer);

// Returns the host of a peer_address(). Nothing: it is a unix socket or unknown.
std::optional<NumericHost> host_of(std::string_view peer);

// True if the peer has ended its output or the connection is lost. A peer that has closed the
// connection looks like a peer that still reads. One system call.
bool has_ended(const Socket& socket);

// Formats a peer_address() as one word: "127.0.0.1:50312", "unix:1000:4711" with the user and the
// process, or "-" if it is unknown.
std::string peer_word(std::string_view peer);

// The process at the other end of a unix socket when it connected. [unix(7)]
struct PeerCredentials {
  std::int32_t process = 0;
  std::uint32_t user = 0;
  std::vector<std::uint32_t> groups = {};  // including supplementary groups
};
// Returns nothing for a TCP socket. O(groups).
std::optional<PeerCredentials> peer_credentials(const Socket& socket);

}  // namespace tubed::os
