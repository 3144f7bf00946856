// Parses what peer_address() returns.
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "os/socket.h"

namespace tubed::os {

std::string network_of(std::string_view peer) {
  constexpr std::size_t kNetworkBytes = 8;
  if (peer.starts_with("unix")) return "unix";
  std::string host(peer.substr(0, peer.rfind(':')));
  if (!host.starts_with('[')) return host;
  std::array<char, sizeof(in6_addr)> address{};
  if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), address.data()) != 1)
    return host;
  // An IPv4 address on a dual-stack socket.
  if (IN6_IS_ADDR_V4MAPPED(reinterpret_cast<const in6_addr*>(address.data()))) return host;
  return std::string(address.data(), kNetworkBytes);
}

std::optional<NumericHost> host_of(std::string_view peer) {
  if (peer.starts_with("unix")) return std::nullopt;
  std::string_view host = peer.substr(0, peer.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return parse_host(host);
}

std::string peer_word(std::string_view peer) {
  constexpr std::size_t kLabelBytes = 5;  // " uid " and " pid "
  if (peer == "?") return "-";
  std::string word;
  while (!peer.empty()) {
    const bool label = peer.starts_with(" uid ") || peer.starts_with(" pid ");
    const char next = peer.front() == ' ' ? '-' : peer.front();
    word.push_back(label ? ':' : next);
    peer.remove_prefix(label ? kLabelBytes : 1);
  }
  return word;
}

}  // namespace tubed::os
