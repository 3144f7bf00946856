// How sockets are created and used
//
// Every socket is non-blocking and close-on-exec. A read or write is one system call whose result
// is a Transfer; an error that only means "try again later" is would_block.
//
// When a process is killed, the file of its unix socket remains. The next start must replace that
// file, but never the socket of a running server. listen_unix() decides as follows:
//
// 1. If the path exists and is not a socket, it is an error.
// 2. A connection to the path is attempted. The file is removed only if the connection is refused.
// 3. The new socket is bound. Its mode is set before, while the umask is 0. The umask belongs to
//    the process, so only one thread may do this.
// 4. The group, and a mode that an ACL has changed, are set on the file (grant_access). If that
//    fails, the path is removed.
// 5. The socket listens. Until then connections are refused.
#include "os/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/descriptor.h"

namespace tubed::os {

namespace {

Error system_error(std::string_view operation, const std::string& name) {
  return {fmt::format("{} {}: {}", operation, name, error_text(errno))};
}

Transfer as_transfer(ssize_t result) {
  if (result > 0) return {Transfer::Kind::done, static_cast<std::size_t>(result)};
  if (result == 0) return {Transfer::Kind::end, 0};
  const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return {later ? Transfer::Kind::would_block : Transfer::Kind::failed, 0};
}

void set_option(const Socket& socket, int level, int option, int value) {
  ::setsockopt(socket.descriptor(), level, option, &value, sizeof value);
}

Socket open_socket(int family) {
  return Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// A socket address of any family.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  template <class T>
  T& as() {
    return *reinterpret_cast<T*>(&storage);
  }
};

std::string text_of(const std::string& host, std::uint16_t port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

bool tcp_address(const std::string& host, std::uint16_t port, SocketAddress& address) {
  auto& v4 = address.as<sockaddr_in>();
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    address.length = sizeof v4;
    return true;
  }
  auto& v6 = address.as<sockaddr_in6>();
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return false;
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  address.length = sizeof v6;
  return true;
}

bool unix_address(const std::string& path, SocketAddress& address) {
  auto& name = address.as<sockaddr_un>();
  if (path.size() >= sizeof name.sun_path) return false;
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  address.length = sizeof name;
  return true;
}

// False only if connecting is refused: then no process listens on the path.
bool is_served(SocketAddress& address) {
  const Socket probe = open_socket(AF_UNIX);
  if (!probe || ::connect(probe.descriptor(), address.get(), address.length) == 0) return true;
  return errno != ECONNREFUSED && errno != ENOENT;
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void set_nonblocking_cloexec(const Socket& socket) {
  const int flags = ::fcntl(socket.descriptor(), F_GETFL);
  ::fcntl(socket.descriptor(), F_SETFL, flags | O_NONBLOCK);
  ::fcntl(socket.descriptor(), F_SETFD, FD_CLOEXEC);
}

// For a single piece, recv() and send() are cheaper than readv() and writev().
Transfer read_into(const Socket& socket, std::span<char> buffer) {
  return as_transfer(::recv(socket.descriptor(), buffer.data(), buffer.size(), 0));
}

Transfer peek_into(const Socket& socket, std::span<char> buffer) {
  return as_transfer(::recv(socket.descriptor(), buffer.data(), buffer.size(), MSG_PEEK));
}

Transfer write_from(const Socket& socket, std::string_view piece) {
  return as_transfer(::send(socket.descriptor(), piece.data(), piece.size(), MSG_NOSIGNAL));
}

Transfer read_into(const Socket& socket, std::span<const std::span<char>> buffers) {
  std::array<iovec, 2> vectors;
  TUBED_ASSERT(buffers.size() <= vectors.size());
  std::transform(buffers.begin(), buffers.end(), vectors.begin(), [](std::span<char> buffer) {
    return iovec{.iov_base = buffer.data(), .iov_len = buffer.size()};
  });
  return as_transfer(
      ::readv(socket.descriptor(), vectors.data(), static_cast<int>(buffers.size())));
}

Transfer write_from(const Socket& socket, std::span<const std::string_view> pieces) {
  std::array<iovec, kMaxPieces> vectors;
  const std::size_t count = std::min(pieces.size(), vectors.size());
  std::transform(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(count),
                 vectors.begin(), [](std::string_view piece) {
                   return iovec{.iov_base = const_cast<char*>(piece.data()),
                                .iov_len = piece.size()};
                 });
  return as_transfer(::writev(socket.descriptor(), vectors.data(), static_cast<int>(count)));
}

bool has_unread(const Socket& socket) {
  int bytes = 0;
  return ::ioctl(socket.descriptor(), FIONREAD, &bytes) == 0 && bytes > 0;
}

void end_output(const Socket& socket) {
  ::shutdown(socket.descriptor(), SHUT_WR);
}

void tune_connection(const Socket& socket, Duration keepalive_idle) {
  SocketAddress address;
  if (::getsockname(socket.descriptor(), address.get(), &address.length) != 0) return;
  if (address.storage.ss_family == AF_UNIX) return;
  constexpr int kProbes = 4;
  const auto idle = std::chrono::ceil<std::chrono::seconds>(keepalive_idle);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(idle.count()));
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL,
             std::max(1, static_cast<int>(idle.count()) / kProbes));
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

void set_user_timeout(const Socket& socket, Duration timeout) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT,
             static_cast<int>(std::clamp<std::int64_t>(whole, 1, std::numeric_limits<int>::max())));
}

void send_refusal(const Socket& socket, std::string_view line) {
  const std::array pieces = {line, std::string_view("\r\n")};
  if (!line.empty()) write_from(socket, pieces);
}

void refuse_connection(Socket socket, std::string_view line) {
  send_refusal(socket, line);
  // Closing with unread input resets the connection, and the peer could lose the line.
  std::array<char, 4096> unread;
  read_into(socket, unread);
}

Result<Socket> connect_tcp(const std::string& host, std::uint16_t port) {
  const std::string name = text_of(host, port);
  SocketAddress address;
  if (!tcp_address(host, port, address)) return Error{name + ": not a numeric address"};
  Socket socket = open_socket(address.storage.ss_family);
  if (!socket) return system_error("cannot open a socket for", name);
  if (::connect(socket.descriptor(), address.get(), address.length) != 0 && errno != EINPROGRESS)
    return system_error("cannot connect to", name);
  return socket;
}

Result<void> finish_connect(const Socket& socket) {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  if (error != 0) return Error{error_text(error)};
  if (local_address(socket) == peer_address(socket)) return Error{error_text(ECONNREFUSED)};
  return {};
}

Result<std::pair<Socket, Socket>> socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return system_error("cannot open", "a pair of sockets");
  return std::pair(Socket(ends[0]), Socket(ends[1]));
}

bool may_open_tcp() {
  return static_cast<bool>(open_socket(AF_INET)) || errno != EAFNOSUPPORT;
}

Result<Socket> listen_tcp(const std::string& host, std::uint16_t port, int backlog) {
  const std::string name = text_of(host, port);
  SocketAddress address;
  if (!tcp_address(host, port, address)) return Error{name + ": not a numeric address"};
  Socket socket = open_socket(address.storage.ss_family);
  if (!socket) return system_error("cannot open a socket for", name);
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.storage.ss_family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (::bind(socket.descriptor(), address.get(), address.length) != 0 ||
      ::listen(socket.descriptor(), backlog) != 0) {
    return system_error("cannot listen on", name);
  }
  return socket;
}

Result<Socket> listen_unix(const std::string& path, const UnixAccess& access, int backlog) {
  const std::string name = "unix:" + path;
  // Neither a mode nor a group would limit who may connect.
  if (path.starts_with('@')) {
    return Error{fmt::format(
        "{}: no abstract socket is opened, because every local user could connect to it; give a "
        "path, as in unix:./{}, or let systemd pass it on with ListenStream={}",
        name, path, path)};
  }
  SocketAddress address;
  if (!unix_address(path, address)) return Error{name + ": the path is too long"};
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) return Error{name + ": exists and is not a socket"};
    if (is_served(address)) return Error{name + ": another server listens there"};
    ::unlink(path.c_str());
  }
  Socket socket = open_socket(AF_UNIX);
  if (!socket) return system_error("cannot open a socket for", name);
  // bind() creates the file with the mode of the socket, less the umask. Connections are refused
  // until the socket listens, so no client connects before the permissions are set.
  if (access.mode && ::fchmod(socket.descriptor(), *access.mode) != 0) {
    return system_error("cannot set the mode of", name);
  }
  const mode_t old_mask = ::umask(0);
  if (!access.mode) ::umask(old_mask);
  const int bound = ::bind(socket.descriptor(), address.get(), address.length);
  ::umask(old_mask);
  if (bound != 0) return system_error("cannot listen on", name);
  if (auto granted = grant_access(path, access); !granted) {
    remove_unix_path(socket, path);
    return granted.error();
  }
  if (::listen(socket.descriptor(), backlog) != 0) return system_error("cannot listen on", name);
  return socket;
}

// Uses a descriptor, never the path: a user who can write to the directory might replace the socket
// by a symbolic link, which a server started as root would follow.
Result<void> grant_access(const std::string& path, const UnixAccess& access) {
  if (access.group.empty() && !access.mode) return {};
  const Descriptor file(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat there {};
  if (!file || ::fstat(file.number(), &there) != 0) return system_error("cannot open", path);
  // A link count above 1 could be a hard link to another server's socket.
  if (!S_ISSOCK(there.st_mode) || there.st_uid != ::geteuid() || there.st_nlink != 1) {
    return Error{path + ": another file has taken the socket's place"};
  }
  if (!access.group.empty()) {
    const group* entry = ::getgrnam(access.group.c_str());
    if (entry == nullptr) return Error{fmt::format("{}: no group {}", path, access.group)};
    if (::fchownat(file.number(), "", static_cast<uid_t>(-1), entry->gr_gid, AT_EMPTY_PATH) != 0) {
      return system_error("cannot set the group of", path);
    }
  }
  // bind() has set the mode, less the bits that a default ACL of the directory removes. Before
  // Linux 6.6 no call changes a mode through an O_PATH descriptor, but the descriptor's name in
  // /proc leads to the file.
  const std::string name = fmt::format("/proc/self/fd/{}", file.number());
  const bool has_mode = !access.mode || (there.st_mode & 07777U) == *access.mode;
  if (!has_mode && ::chmod(name.c_str(), *access.mode) != 0) {
    return system_error("cannot set the mode of", path);
  }
  return {};
}

void remove_unix_path(const Socket& socket, const std::string& path) {
  // The inodes of the socket and the path differ, so they cannot be compared. Instead this socket
  // stops listening: if the path is then still served, it belongs to another process.
  SocketAddress address;
  if (!unix_address(path, address)) return;
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0 || !S_ISSOCK(there.st_mode)) return;
  ::shutdown(socket.descriptor(), SHUT_RDWR);
  if (!is_served(address)) ::unlink(path.c_str());
}

namespace {

std::string text_of(SocketAddress& address) {
  char host[INET6_ADDRSTRLEN] = "";
  switch (address.storage.ss_family) {
    case AF_INET: {
      const auto& v4 = address.as<sockaddr_in>();
      ::inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
      return fmt::format("{}:{}", host, ntohs(v4.sin_port));
    }
    case AF_INET6: {
      const auto& v6 = address.as<sockaddr_in6>();
      ::inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
      return fmt::format("[{}]:{}", host, ntohs(v6.sin6_port));
    }
    default: {
      const char* name = address.as<sockaddr_un>().sun_path;
      const std::size_t bytes = address.length - offsetof(sockaddr_un, sun_path);
      const bool is_abstract = bytes > 1 && name[0] == '\0';
      return is_abstract ? fmt::format("unix:@{}", std::string_view(name + 1, bytes - 1))
                         : fmt::format("unix:{}", name);
    }
  }
}

}  // namespace

std::string local_address(const Socket& socket) {
  SocketAddress address;
  if (::getsockname(socket.descriptor(), address.get(), &address.length) != 0) return "?";
  return text_of(address);
}

std::string peer_address(const Socket& socket) {
  SocketAddress address;
  if (::getpeername(socket.descriptor(), address.get(), &address.length) != 0) return "?";
  if (address.storage.ss_family != AF_UNIX) return text_of(address);
  const auto peer = peer_credentials(socket);
  return peer ? fmt::format("unix uid {} pid {}", peer->user, peer->process) : "unix";
}

Socket accept_from(const Socket& listening) {
  return Socket(::accept4(listening.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

bool has_ended(const Socket& socket) {
  pollfd watched{.fd = socket.descriptor(), .events = POLLRDHUP, .revents = 0};
  ::poll(&watched, 1, 0);
  return watched.revents != 0;
}

std::optional<PeerCredentials> peer_credentials(const Socket& socket) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0 ||
      credentials.pid == 0) {
    return std::nullopt;
  }
  PeerCredentials peer{.process = credentials.pid, .user = credentials.uid, .groups = {}};
  std::vector<gid_t> groups(64);
  bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) != 0 &&
      errno == ERANGE) {
    groups.resize(bytes / sizeof(gid_t));
    if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) != 0)
      bytes = 0;
  }
  groups.resize(bytes / sizeof(gid_t));
  peer.groups.assign(groups.begin(), groups.end());
  peer.groups.push_back(credentials.gid);
  return peer;
}

}  // namespace tubed::os
