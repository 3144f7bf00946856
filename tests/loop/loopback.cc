#include "tests/loop/loopback.h"

#include <array>
#include <cstring>
#include <filesystem>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace tubed::loop_test {

using os::Socket;

namespace {

bool wait_for_input(const os::Socket& socket) {
  pollfd waited{.fd = socket.descriptor(), .events = POLLIN, .revents = 0};
  return ::poll(&waited, 1, std::chrono::milliseconds(kLastResort).count()) == 1;
}

// Appends bytes that have arrived. Returns false if the stream has ended.
bool append(const os::Socket& socket, std::string& text, std::size_t most) {
  std::array<char, 65536> buffer;
  const ssize_t count =
      ::recv(socket.descriptor(), buffer.data(), std::min(most, buffer.size()), MSG_DONTWAIT);
  if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && errno == EAGAIN);
}

template <class Address>
os::Socket connected(int family, const Address& address, const sockaddr_in* from = nullptr) {
  os::Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  TUBED_ASSERT(socket);
  TUBED_ASSERT(from == nullptr ||
               ::bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(from), sizeof *from) ==
                   0);
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof address);
  if (::connect(socket.descriptor(), reinterpret_cast<sockaddr*>(&storage), sizeof address) != 0) {
    return {};
  }
  ::fcntl(socket.descriptor(), F_SETFL, O_NONBLOCK);
  return socket;
}

}  // namespace

std::pair<os::Socket, os::Socket> connected_pair() {
  std::array<int, 2> ends{};
  TUBED_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) ==
               0);
  return {os::Socket(ends[0]), os::Socket(ends[1])};
}

os::Socket listening() {
  auto socket = os::listen_tcp("127.0.0.1", 0, 4096);
  TUBED_ASSERT(socket.ok());
  return std::move(*socket);
}

os::Socket refusing() {
  os::Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  TUBED_ASSERT(::bind(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address) ==
               0);
  return socket;
}

os::Socket connect_from(const char* host, const std::string& address) {
  const auto colon = address.rfind(':');
  sockaddr_in here{};
  sockaddr_in there{};
  here.sin_family = there.sin_family = AF_INET;
  there.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  TUBED_ASSERT(::inet_pton(AF_INET, host, &here.sin_addr) == 1);
  TUBED_ASSERT(::inet_pton(AF_INET, address.substr(0, colon).c_str(), &there.sin_addr) == 1);
  return connected(AF_INET, there, &here);
}

os::Socket connect_to(const std::string& address) {
  if (address.starts_with("unix:")) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    TUBED_ASSERT(address.size() - 5 < sizeof name.sun_path);
    std::memcpy(name.sun_path, address.c_str() + 5, address.size() - 5);
    return connected(AF_UNIX, name);
  }
  const auto colon = address.rfind(':');
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1)));
  if (address.starts_with("[")) {
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    name.sin6_port = htons(port);
    TUBED_ASSERT(::inet_pton(AF_INET6, address.substr(1, colon - 2).c_str(), &name.sin6_addr) == 1);
    return connected(AF_INET6, name);
  }
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  TUBED_ASSERT(::inet_pton(AF_INET, address.substr(0, colon).c_str(), &name.sin_addr) == 1);
  return connected(AF_INET, name);
}

std::string read_some(const os::Socket& socket) {
  std::string text;
  append(socket, text, std::string::npos);
  return text;
}

std::string read_exactly(const os::Socket& socket, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes && wait_for_input(socket)) {
    if (!append(socket, text, bytes - text.size())) break;
  }
  return text;
}

std::string read_to_end(const os::Socket& socket) {
  std::string text;
  bool goes_on = true;
  while (goes_on && wait_for_input(socket)) goes_on = append(socket, text, std::string::npos);
  TUBED_ASSERT(!goes_on);
  return text;
}

void write_all(const os::Socket& socket, std::string_view bytes) {
  TUBED_ASSERT(::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(bytes.size()));
}

void half_close(const os::Socket& socket) {
  TUBED_ASSERT(::shutdown(socket.descriptor(), SHUT_WR) == 0);
}

void reset(os::Socket socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  TUBED_ASSERT(::setsockopt(socket.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) ==
               0);
}

int option_of(const os::Socket& socket, int level, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  TUBED_ASSERT(::getsockopt(socket.descriptor(), level, option, &value, &size) == 0);
  return value;
}

void wait_briefly(loop::Loop& loop) {
  pollfd waited{.fd = uv_backend_fd(loop.uv()), .events = POLLIN, .revents = 0};
  ::poll(&waited, 1, 1);
}

bool has_ipv6() {
  return os::listen_tcp("::1", 0, 1).ok();
}

NoDescriptors::NoDescriptors() {
  TUBED_ASSERT(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
  const int lowest_free = ::fcntl(0, F_DUPFD_CLOEXEC, 0);
  TUBED_ASSERT(lowest_free >= 0);
  ::close(lowest_free);
  // All descriptors below the limit are open.
  rlimit none = before_;
  none.rlim_cur = static_cast<rlim_t>(lowest_free);
  TUBED_ASSERT(::setrlimit(RLIMIT_NOFILE, &none) == 0);
}

NoDescriptors::~NoDescriptors() {
  ::setrlimit(RLIMIT_NOFILE, &before_);
}

Directory::Directory() {
  std::string name = (std::filesystem::temp_directory_path() / "tubed-test-XXXXXX").string();
  TUBED_ASSERT(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

Directory::~Directory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tubed::loop_test
