#include "tubectl/address.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <sys/un.h>

#include "platform/descriptor.h"
#include "tubectl/system_error.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

Result<Address> local_address(std::string_view path) {
  constexpr std::size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty()) return Error{"unix: has no path after it"};
  if (path.size() > kMaxPathBytes) {
    return Error{fmt::format("the path of a unix socket has at most {} bytes, this one {}",
                             kMaxPathBytes, path.size())};
  }
  return Address{AF_UNIX, std::string(path), 0};
}

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || stop != end || port == 0) {
    return Error{fmt::format("\"{}\" is not a port from 1 to 65535", text)};
  }
  return port;
}

Result<Address> internet_address(int family, std::string_view host, std::string_view port) {
  Address address{family, std::string(host == "localhost" ? "127.0.0.1" : host), kDefaultPort};
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (::inet_pton(family, address.host.c_str(), bytes.data()) != 1) {
    return Error{fmt::format("\"{}\" is neither a numeric address nor localhost", host)};
  }
  if (port.empty()) return address;
  auto number = parse_port(port.substr(1));
  if (!number) return number.error();
  address.port = *number;
  return address;
}

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

SocketAddress socket_address(const Address& address) {
  SocketAddress result;
  if (address.family == AF_UNIX) {
    auto& local = reinterpret_cast<sockaddr_un&>(result.storage);
    local.sun_family = AF_UNIX;
    std::memcpy(local.sun_path, address.host.c_str(), address.host.size() + 1);
    result.size = sizeof local;
  } else if (address.family == AF_INET6) {
    auto& internet = reinterpret_cast<sockaddr_in6&>(result.storage);
    internet.sin6_family = AF_INET6;
    internet.sin6_port = htons(address.port);
    ::inet_pton(AF_INET6, address.host.c_str(), &internet.sin6_addr);
    result.size = sizeof internet;
  } else {
    auto& internet = reinterpret_cast<sockaddr_in&>(result.storage);
    internet.sin_family = AF_INET;
    internet.sin_port = htons(address.port);
    ::inet_pton(AF_INET, address.host.c_str(), &internet.sin_addr);
    result.size = sizeof internet;
  }
  return result;
}

}  // namespace

std::string to_string(const Address& address) {
  if (address.family == AF_UNIX) return fmt::format("{}{}", kUnixPrefix, address.host);
  if (address.family == AF_INET6) return fmt::format("[{}]:{}", address.host, address.port);
  return fmt::format("{}:{}", address.host, address.port);
}

Result<Address> parse_address(std::string_view text) {
  if (text.starts_with(kUnixPrefix)) return local_address(text.substr(kUnixPrefix.size()));
  if (text.starts_with('/')) return local_address(text);
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == text.npos) return Error{fmt::format("\"{}\": a ] is missing", text)};
    const std::string_view port = text.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) {
      return Error{fmt::format("\"{}\": after ] comes nothing or :PORT", text)};
    }
    return internet_address(AF_INET6, text.substr(1, end - 1), port);
  }
  const auto colon = text.find(':');
  if (colon == text.npos) return internet_address(AF_INET, text, {});
  if (text.find(':', colon + 1) != text.npos) {
    return Error{fmt::format("\"{}\": an IPv6 address is written [ADDRESS]:PORT", text)};
  }
  return internet_address(AF_INET, text.substr(0, colon), text.substr(colon));
}

Result<platform::Descriptor> connect_to(const Address& address) {
  const auto failed = [&address] {
    // What connect() says when its time is up.
    if (errno == EINPROGRESS) errno = ETIMEDOUT;
    return system_error(fmt::format("cannot connect to {}", to_string(address)));
  };
  platform::Descriptor descriptor(::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!descriptor) return failed();
  const timeval patience{kPatienceSeconds, 0};
  const int number = descriptor.number();
  if (::setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
      ::setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
    return failed();
  }
  const SocketAddress target = socket_address(address);
  if (::connect(number, reinterpret_cast<const sockaddr*>(&target.storage), target.size) != 0) {
    return failed();
  }
  const int on = 1;
  if (address.family != AF_UNIX &&
      ::setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    return failed();
  }
  return descriptor;
}

}  // namespace tubed::tubectl
