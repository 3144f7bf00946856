// parse_address() decides by the first characters: "beanstalk://" or "beanstalks://" starts a URL
// of a host, "unix:" or "/" a path, "[" an IPv6 address, anything else an IPv4 address or a name
// with an optional port. connect_to() tries each address of a name in the resolver's order and
// returns the first connection. The socket stays blocking; its timeouts bound every later send and
// receive.
#include "client/address.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <sys/un.h>

#include "client/system_error.h"
#include "os/descriptor.h"
#include "text/host.h"
#include "text/numbers.h"

namespace tubed::client {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::string_view kLocalhost = "localhost";
constexpr std::string_view kPlainScheme = "beanstalk://";
constexpr std::string_view kTlsScheme = "beanstalks://";

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
  const auto port = parse_number<std::uint16_t>(text);
  if (!port || *port == 0) return Error{fmt::format("\"{}\" is not a port from 1 to 65535", text)};
  return *port;
}

// Letters, digits, dots, hyphens and underscores, at least one of them neither a digit nor a dot: a
// mistyped IPv4 address is not a name.
bool is_host_name(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789.";
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  return !text.empty() && text.find_first_not_of(kLetters) == text.npos &&
         text.find_first_not_of(kDigits) != text.npos;
}

Result<Address> internet_address(int family, std::string_view host, std::string_view port) {
  Address address{family, std::string(host), kDefaultPort};
  if (host == kLocalhost) {
    address.host = "127.0.0.1";
    address.is_localhost = true;
  }
  if (!parse_host(family == AF_INET6 ? HostFamily::ipv6 : HostFamily::ipv4, address.host)) {
    if (family != AF_INET || !is_host_name(host)) {
      return Error{fmt::format("\"{}\" is neither an address nor a host's name", host)};
    }
    address.family = AF_UNSPEC;
  }
  if (port.empty()) return address;
  address.port = TRY(parse_port(port.substr(1)));
  return address;
}

// HOST, HOST:PORT, [IPV6] or [IPV6]:PORT.
Result<Address> host_address(std::string_view text) {
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

// The URL of a server consists of scheme, host and port.
Result<Address> url_address(std::string_view text) {
  const bool tls = text.starts_with(kTlsScheme);
  if (!tls && !text.starts_with(kPlainScheme)) {
    return Error{fmt::format("\"{}\": the scheme of a server is {} or, with TLS, {}", text,
                             kPlainScheme, kTlsScheme)};
  }
  const std::string_view host = text.substr(tls ? kTlsScheme.size() : kPlainScheme.size());
  if (host.find('@') != host.npos) {
    // Not quoted, because the text may contain a password.
    return Error{"the URL of a server has no user: a token comes from --token-file"};
  }
  if (host.find_first_of("/?#") != host.npos) {
    return Error{fmt::format("\"{}\": the URL of a server has no path: {}HOST:PORT", text,
                             tls ? kTlsScheme : kPlainScheme)};
  }
  Address address = TRY(host_address(host));
  address.tls = tls;
  return address;
}

Error cannot_connect(const Address& address) {
  // A timed-out connect() sets EINPROGRESS, or EALREADY when it was repeated after a signal.
  if (errno == EINPROGRESS || errno == EALREADY) errno = ETIMEDOUT;
  return system_error(fmt::format("cannot connect to {}", to_string(address)));
}

// With SO_SNDTIMEO the kernel does not restart connect() after a signal (signal(7)). The repeated
// call waits for the same connection attempt.
int connect_despite_signals(int number, const sockaddr* target, socklen_t size) {
  int done = 0;
  do {
    done = ::connect(number, target, size);
  } while (done != 0 && errno == EINTR);
  return done;
}

Result<os::Descriptor> connect_one(const Address& address, const sockaddr* target, socklen_t size,
                                   Duration limit) {
  os::Descriptor descriptor(::socket(target->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!descriptor) return cannot_connect(address);
  // 0 would mean no limit.
  const auto microseconds =
      std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::microseconds>(limit).count());
  const timeval timeout{microseconds / 1'000'000, microseconds % 1'000'000};
  const int number = descriptor.number();
  if (::setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) != 0 ||
      ::setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) != 0 ||
      connect_despite_signals(number, target, size) != 0) {
    return cannot_connect(address);
  }
  const int on = 1;
  if (target->sa_family != AF_UNIX &&
      ::setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    return cannot_connect(address);
  }
  return descriptor;
}

Result<os::Descriptor> connect_local(const Address& address, Duration limit) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  std::memcpy(local.sun_path, address.host.c_str(), address.host.size() + 1);
  std::size_t size = sizeof local;
  if (address.host.starts_with('@')) {
    // An abstract socket, whose name has no end but that of the address [unix(7)].
    local.sun_path[0] = '\0';
    size = offsetof(sockaddr_un, sun_path) + address.host.size();
  }
  return connect_one(address, reinterpret_cast<const sockaddr*>(&local),
                     static_cast<socklen_t>(size), limit);
}

struct FreeAddresses {
  void operator()(addrinfo* first) const { ::freeaddrinfo(first); }
};

// Tries all addresses of a name, in the order of the resolver.
Result<os::Descriptor> connect_internet(const Address& address, Duration limit) {
  addrinfo hints{};
  hints.ai_family = address.family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return Error{
        fmt::format("cannot connect to {}: {}", to_string(address), ::gai_strerror(error))};
  }
  const std::unique_ptr<addrinfo, FreeAddresses> first(found);
  Result<os::Descriptor> connected = Error{"the name has no address"};
  for (const addrinfo* one = first.get(); one != nullptr && !connected; one = one->ai_next) {
    connected = connect_one(address, one->ai_addr, one->ai_addrlen, limit);
  }
  return connected;
}

}  // namespace

std::string to_string(const Address& address) {
  if (address.family == AF_UNIX) return fmt::format("{}{}", kUnixPrefix, address.host);
  const std::string_view scheme = address.tls ? kTlsScheme : "";
  if (address.family == AF_INET6) {
    return fmt::format("{}[{}]:{}", scheme, address.host, address.port);
  }
  return fmt::format("{}{}:{}", scheme, address.host, address.port);
}

std::string host_name(const Address& address) {
  return address.is_localhost ? std::string(kLocalhost) : address.host;
}

Result<Address> parse_address(std::string_view text) {
  if (text.starts_with(kUnixPrefix)) return local_address(text.substr(kUnixPrefix.size()));
  if (text.starts_with('/')) return local_address(text);
  if (text.find("://") != text.npos) return url_address(text);
  return host_address(text);
}

Result<std::vector<Address>> parse_addresses(std::string_view text) {
  std::vector<Address> addresses;
  const bool is_path = text.starts_with(kUnixPrefix) || text.starts_with('/');
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = is_path ? text.size() : std::min(text.find(',', begin), text.size());
    addresses.push_back(TRY(parse_address(text.substr(begin, end - begin))));
    if (addresses.size() > 1 && addresses.back().family == AF_UNIX)
      return Error{"the address of a unix socket stands alone"};
    if (addresses.back().tls != addresses.front().tls)
      return Error{fmt::format("\"{}\": either all addresses have TLS or none has", text)};
    begin = end + 1;
  }
  return addresses;
}

Result<os::Descriptor> connect_to(const Address& address, Duration limit) {
  return address.family == AF_UNIX ? connect_local(address, limit)
                                   : connect_internet(address, limit);
}

bool nothing_listens(const Error& error) {
  // system_error() appends the text of errno.
  return error.message.ends_with(": " + os::error_text(ECONNREFUSED)) ||
         error.message.ends_with(": " + os::error_text(ENOENT));
}

}  // namespace tubed::client
