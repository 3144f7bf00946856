#include "bench/client.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tubed::bench {
namespace {

constexpr std::string_view kInserted = "INSERTED ";

}  // namespace

Client::~Client() {
  ::close(descriptor_);
}

Result<void> Client::put(std::uint64_t count) {
  unsent_ += count * request_bytes_;
  return send();
}

Result<void> Client::send() {
  while (unsent_ > 0) {
    const std::string_view rest = requests_.substr(sent_ % request_bytes_);
    const std::size_t bytes = std::min<std::uint64_t>(unsent_, rest.size());
    const ssize_t done = ::send(descriptor_, rest.data(), bytes, MSG_NOSIGNAL);
    if (done < 0) {
      if (errno == EAGAIN) return {};
      if (errno == EINTR) continue;
      return Error{fmt::format("cannot send: {}", std::strerror(errno))};
    }
    sent_ += static_cast<std::uint64_t>(done);
    unsent_ -= static_cast<std::uint64_t>(done);
  }
  return {};
}

Result<std::uint64_t> Client::receive(std::span<char> buffer) {
  const ssize_t got = ::recv(descriptor_, buffer.data(), buffer.size(), 0);
  if (got == 0) return Error{"the server closed a connection"};
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return std::uint64_t{0};
    return Error{fmt::format("cannot receive: {}", std::strerror(errno))};
  }
  const std::string_view input(buffer.data(), static_cast<std::size_t>(got));
  if (begun_.empty()) return take_lines(input);
  const std::string whole = std::exchange(begun_, {}).append(input);
  return take_lines(whole);
}

Result<std::uint64_t> Client::take_lines(std::string_view input) {
  std::uint64_t lines = 0;
  for (std::size_t end = 0; (end = input.find('\n')) != input.npos; ++lines) {
    if (!input.starts_with(kInserted)) {
      return Error{fmt::format("a put was answered {}", input.substr(0, input.find('\r')))};
    }
    input.remove_prefix(end + 1);
  }
  begun_ = input;
  return lines;
}

Result<int> connect_to(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return Error{fmt::format("{} is no IPv4 address", host)};
  }
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return Error{fmt::format("no socket: {}", std::strerror(errno))};
  const int on = 1;
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
      ::fcntl(descriptor, F_SETFL, O_NONBLOCK) != 0) {
    Error error{fmt::format("cannot connect to {}:{}: {}", host, port, std::strerror(errno))};
    ::close(descriptor);
    return error;
  }
  return descriptor;
}

}  // namespace tubed::bench
